-- Only a job that runs has a lease: it is not looked for by its state, so that the index of all leases can never be taken
-- for that of the ids. Each claimed job has a token of its own, so the two lists need no pairing.
where id = any(:ids::uuid[]) and token = any(:tokens::uuid[]) and lease_expires_at is not null
