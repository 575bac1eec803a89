-- What people look for is found by an index, the newest first. Each has only the jobs that have such a thing, so that
-- others cost nothing. Nearly all jobs have a kind, and its index costs each that is kept 1.4 %.
create index windlass_of_tenant on windlass_job (tenant, seq) where tenant is not null;
create index windlass_of_key on windlass_job (unique_key, seq) where unique_key is not null;
create index windlass_of_parent on windlass_job (parent_id, seq) where parent_id is not null;
create index windlass_of_kind on windlass_job (kind, seq) where kind is not null;
-- up to the first colon, where the type ends, and no more than 80 characters: an error may be long
create index windlass_of_error on windlass_job (
    substr(last_error, 1, instr(substr(last_error, 1, 80) || ':', ':') - 1), seq
) where last_error is not null;
