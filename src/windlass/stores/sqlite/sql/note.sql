-- in the transaction that has looked at the claim
update windlass_job
set progress = coalesce(:progress, progress),
    -- a damaged count of lines begins anew behind those that are kept
    log_lines = :lines + iif(
        log_lines between 0 and 4611686018427387904,
        log_lines,
        coalesce((select max(line) from windlass_log where seq = windlass_job.seq), 0)
    )
where seq = :seq
returning log_lines
