update windlass_job
{set_running}
where seq in (select value from json_each(:seqs))
returning {claimed_columns}
