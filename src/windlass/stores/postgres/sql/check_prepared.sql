select gid, owner::text, prepared
from pg_prepared_xacts
where database = current_database() and prepared < clock_timestamp() - :age::interval
order by prepared
limit 1
