-- The indexes of 0003.sql for a store that is being made: its table is empty, and nobody works on it yet.
create index windlass_of_tenant on windlass_job (tenant, seq) where tenant is not null;
create index windlass_of_key on windlass_job (unique_key, seq) where unique_key is not null;
create index windlass_of_parent on windlass_job (parent_id, seq) where parent_id is not null;
create index windlass_of_error on windlass_job (split_part(left(last_error, 80), ':', 1), seq)
    where last_error is not null;
create index windlass_of_kind on windlass_job (kind, seq)
    where kind is not null and (finished_at is not null or state = 'scheduled');
