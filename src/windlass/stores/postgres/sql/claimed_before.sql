-- what a claim whose reply was lost was given, those that it still holds; :seqs are sequence numbers, :deliveries their
-- deliveries
select
    claimed.claimed_at, claimed.lease_expires_at, claimed.worker, {claimed_columns}
from windlass_job as claimed
where claimed.seq = any(:seqs::bigint[]) and claimed.lease_expires_at is not null
    -- a job has one delivery at a time, so the two lists need no pairing beyond the number itself
    and claimed.seq || ':' || claimed.delivery = any(:deliveries::text[])
