select seq from windlass_job not indexed where seq < :before order by seq desc limit :limit
