-- The oldest records of each queue and end that have been kept for long enough; with no age given, whatever it is. Behind
-- the place where the last ones went, if it is given: an old snapshot may keep what was before it.
with moment as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as now
)
select job.seq, ended.queue, ended.state, job.finished_at
from moment
cross join unnest(
    :queues::text[], :states::text[], :ages::interval[], :most::integer[], :since::timestamptz[], :since_seqs::bigint[]
) as ended (queue, state, age, most, since, since_seq)
cross join lateral (
    select job.seq, job.finished_at
    from windlass_job as job
    where job.queue = ended.queue and job.state = ended.state and job.finished_at is not null
        and job.finished_at <= coalesce(moment.now - ended.age, 'infinity')
        and (job.finished_at, job.seq) > (coalesce(ended.since, '-infinity'), coalesce(ended.since_seq, 0))
    order by job.finished_at, job.seq
    limit ended.most
    for update skip locked
) as job
limit :limit::integer
