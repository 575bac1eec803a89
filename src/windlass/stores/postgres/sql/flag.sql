update windlass_job set cancel_requested = true where seq = any(:seqs::bigint[])
