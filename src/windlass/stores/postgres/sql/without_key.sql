update windlass_job set unique_key = null, hold = null, hold_until = null where id = any(:ids::uuid[])
