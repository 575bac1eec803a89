-- no index has this order, but two have all of them: their entries are read, and no record
select seq from (
    select seq from windlass_job indexed by windlass_ready where state = 'pending' and queue = :queue
    union all
    select seq from windlass_job indexed by windlass_due where state = 'scheduled' and queue = :queue
)
order by seq
limit :limit
