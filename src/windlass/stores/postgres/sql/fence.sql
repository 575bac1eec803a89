-- Which claims hold, and so that nobody takes these jobs back before the transaction ends: a rescue passes by a job
-- with any lock on it. A shared lock is enough for that, and lets renewals, notes and cancels go on meanwhile. Where a
-- transaction sees one moment alone those would make it fail at its end, so it locks them out. Only a job that runs has
-- a lease: it is not looked for by its state, so that the index of all leases can never be taken for that of the ids.
with shared as materialized (
    select id, token
    from windlass_job
    where current_setting('transaction_isolation') = 'read committed'
        and id = any(:ids::uuid[]) and token = any(:tokens::uuid[]) and lease_expires_at is not null
    order by id
    for key share
),
whole as materialized (
    select id, token
    from windlass_job
    where current_setting('transaction_isolation') <> 'read committed'
        and id = any(:ids::uuid[]) and token = any(:tokens::uuid[]) and lease_expires_at is not null
    order by id
    for update
)
select id::text, token::text from shared
union all
select id::text, token::text from whole
