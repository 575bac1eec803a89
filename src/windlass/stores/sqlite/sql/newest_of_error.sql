-- whatever has an error of this type stands there, and others whose type begins alike
select seq from windlass_job indexed by windlass_of_error
where last_error is not null
    and substr(last_error, 1, instr(substr(last_error, 1, 80) || ':', ':') - 1)
        = substr(:error_type, 1, instr(substr(:error_type, 1, 80) || ':', ':') - 1)
    and seq < :before
order by seq desc
limit :limit
