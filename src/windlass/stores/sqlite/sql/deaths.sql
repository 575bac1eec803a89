-- The dead jobs of a queue before a time of death and a number, the last to die first, as the pruner's index has them: at
-- first the rest of those that died at that time, of which there may be many.
select finished_at, seq from (
    select finished_at, seq from windlass_job indexed by windlass_finished
    where queue = :queue and state = 'dead' and finished_at = :at and seq < :seq
    order by seq desc
    limit :limit
)
union all
select finished_at, seq from (
    select finished_at, seq from windlass_job indexed by windlass_finished
    where queue = :queue and state = 'dead' and finished_at < :at
    order by finished_at desc, seq desc
    limit :limit
)
limit :limit
