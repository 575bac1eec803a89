-- before its mark no scheduled job of a queue waits
select min(due.run_at) - coalesce(:now::timestamptz, clock_timestamp())
from unnest(:queues::text[]) as wanted (queue)
left join windlass_queue as known on known.queue = wanted.queue
cross join lateral (
    -- infinity cannot be subtracted from
    select greatest(job.run_at, '0001-01-01 00:00:00+00') as run_at
    from windlass_job as job
    where job.state = 'scheduled' and job.queue = wanted.queue and job.run_at >= coalesce(known.due_mark, '-infinity')
        and job.run_at < 'infinity'
    order by job.run_at
    limit 1
) as due
where known.paused is not true
