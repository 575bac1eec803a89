select seq, payload from windlass_job where seq = any(:seqs::bigint[])
