-- a key is freed by the job that holds it, never by another; a job has one key, so the two lists need no pairing
delete from windlass_hold where name = any(:names::text[]) and job_id = any(:job_ids::uuid[])
