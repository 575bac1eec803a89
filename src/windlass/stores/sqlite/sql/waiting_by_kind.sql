-- goes through the whole index of them, and looks at no row
select queue, kind, count(*), min(iif(run_at between :earliest and :latest, run_at, null)) from windlass_job indexed by windlass_ready_kind
where state = 'pending' and kind is not null
group by queue, kind
