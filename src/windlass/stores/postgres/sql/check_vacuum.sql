select n_live_tup, n_dead_tup, greatest(last_autovacuum, last_vacuum)
from pg_stat_user_tables
where relid = 'windlass_job'::regclass
