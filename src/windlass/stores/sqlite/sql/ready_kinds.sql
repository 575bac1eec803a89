-- one step in the index for each of the kinds
select wanted.value from json_each(:kinds) as wanted
where exists (
    select 1 from windlass_job indexed by windlass_ready_kind
    where state = 'pending' and queue = :queue and kind = wanted.value and kind is not null
)
