update windlass_job
set lease_expires_at = :lease_expires_at
{where_claims_hold}
returning id, token, cancel_requested
