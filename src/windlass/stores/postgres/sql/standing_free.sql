-- As standing.sql, of those jobs alone that nobody has locked. :going are the ones that may be deleted, which a transaction
-- that has fenced them does not allow. Nothing is waited for longer than :lock_timeout milliseconds, until the transaction
-- ends.
with patience as materialized (
    select set_config('lock_timeout', :lock_timeout::text, true) as value
),
kept as materialized (
    select
        {standing_columns}
    from windlass_job
    where id = any(:ids::uuid[]) and (select value from patience) is not null
    order by id
    for no key update skip locked
),
whole as materialized (
    select
        {standing_columns}
    from windlass_job
    where id = any(:going::uuid[]) and (select value from patience) is not null
    order by id
    for update skip locked
)
select *, true from kept
union all
select *, true from whole
union all
-- all of them, as they were: a job that is not among those above is locked elsewhere
select
    {standing_columns},
    false
from windlass_job
where id = any(:ids::uuid[] || :going::uuid[])
