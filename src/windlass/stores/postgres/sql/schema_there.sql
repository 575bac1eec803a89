-- A session remembers that a name was not there. It looks anew because it has to open pg_namespace here, and so sees what
-- another migrator has made since this transaction began.
select
    to_regclass('windlass_meta') is not null,
    $1::text is null or exists (select from pg_namespace where nspname = $1::text)
