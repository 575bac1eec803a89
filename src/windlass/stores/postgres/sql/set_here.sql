-- for this transaction alone; with what it was, to be put back
with before as materialized (
    select current_setting(:name::text) as value
)
select before.value, set_config(:name::text, :value::text, true) from before
