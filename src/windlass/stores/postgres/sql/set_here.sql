-- for this transaction alone; with what it was, to be put back
with before as materialized (
    select current_setting($1::text) as value
)
select before.value, set_config($1::text, $2::text, true) from before
