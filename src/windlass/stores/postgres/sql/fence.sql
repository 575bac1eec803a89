-- Which claims hold, and so that nobody takes these jobs back before the transaction ends: a rescue passes by a job
-- with any lock on it. A shared lock is enough for that, and lets renewals, notes and cancels go on meanwhile. Where a
-- transaction sees one moment alone those would make it fail at its end, so it locks them out.
with shared as materialized (
    select
        {standing_columns}
    from windlass_job
    {where_claims_hold}
        and current_setting('transaction_isolation') = 'read committed'
    order by windlass_job.id
    for key share
),
whole as materialized (
    select
        {standing_columns}
    from windlass_job
    {where_claims_hold}
        and current_setting('transaction_isolation') <> 'read committed'
    order by windlass_job.id
    for update
)
select * from shared
union all
select * from whole
