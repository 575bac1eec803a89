-- the oldest records of each queue and end that have been kept for long enough; with no age given, whatever it is
with moment as materialized (
    select coalesce($1::timestamptz, clock_timestamp()) as now
)
select job.seq, ended.queue, ended.state
from moment
cross join unnest($2::text[], $3::text[], $4::interval[], $5::integer[]) as ended (queue, state, age, most)
cross join lateral (
    select job.seq
    from windlass_job as job
    where job.queue = ended.queue and job.state = ended.state and job.finished_at is not null
        and job.finished_at <= coalesce(moment.now - ended.age, 'infinity')
    order by job.finished_at, job.seq
    limit ended.most
    for update skip locked
) as job
limit $6::integer
