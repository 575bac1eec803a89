do $$ begin execute format('create schema %I', current_setting('windlass.schema_to_make')); end $$
