-- A session remembers that a name was not there. It looks anew because it has to open pg_namespace here, and so sees what
-- another migrator has made since this transaction began. The schema is named, so that a role that may not use it is told
-- so: by the search path alone it would find nothing there, and make the tables in pg_temp, to be gone with its session.
select
    to_regclass(coalesce(quote_ident(:schema::text) || '.', '') || 'windlass_meta') is not null,
    :schema::text is null or exists (select from pg_namespace where nspname = :schema::text)
