-- a caller's transaction that has no limit of its own gets one, for as long as a key or a job may have to be waited for
with before as materialized (
    select current_setting('lock_timeout') as value
)
select
    before.value,
    set_config('lock_timeout', case when before.value = '0' then :lock_timeout::text else before.value end, true)
from before
