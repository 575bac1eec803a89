-- what a claim whose reply was lost was given, those that it still holds; $1 are sequence numbers, $2 their deliveries
select
    job.claimed_at, job.lease_expires_at, job.worker, job.seq, job.id::text, job.queue, job.kind, job.payload, job.codec,
    job.headers, job.tenant, job.priority, job.attempt, job.max_attempts, job.delivery, job.created_at, job.run_at,
    job.last_error, job.cancel_requested, job.unique_key, job.parent_id::text, job.schedule_id, job.limit_key,
    job.token::text, job.hold_until, job.hold
from windlass_job as job
where job.seq = any($1::bigint[]) and job.lease_expires_at is not null
    -- a job has one delivery at a time, so the two lists need no pairing beyond the number itself
    and job.seq || ':' || job.delivery = any($2::text[])
