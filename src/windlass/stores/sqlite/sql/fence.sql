-- an update takes the write lock even where a transaction has only read so far, and where no claim holds
update windlass_job
set token = token
{where_claims_hold}
returning id, token
