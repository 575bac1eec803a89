-- outside a transaction: each statement by itself, written to be repeatable

-- What people look for is found by an index, the newest first. Each has only the jobs that have such a thing, so that
-- others cost nothing. A build that was killed leaves an index that nobody may use.
drop index concurrently if exists windlass_of_tenant;
create index concurrently windlass_of_tenant on windlass_job (tenant, seq) where tenant is not null;
drop index concurrently if exists windlass_of_key;
create index concurrently windlass_of_key on windlass_job (unique_key, seq) where unique_key is not null;
drop index concurrently if exists windlass_of_parent;
create index concurrently windlass_of_parent on windlass_job (parent_id, seq) where parent_id is not null;
-- up to the first colon, where the type ends, and no more than 80 characters: an index takes no long text
drop index concurrently if exists windlass_of_error;
create index concurrently windlass_of_error on windlass_job (split_part(left(last_error, 80), ':', 1), seq)
    where last_error is not null;
-- Nearly all jobs have a kind. Those that are finished or scheduled stand here; the others are found by the indexes that
-- lead to them anyway: with them in it, this one would cost every job that is kept nearly three times as much.
drop index concurrently if exists windlass_of_kind;
create index concurrently windlass_of_kind on windlass_job (kind, seq)
    where kind is not null and (finished_at is not null or state = 'scheduled');
