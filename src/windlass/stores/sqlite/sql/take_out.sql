-- the jobs that this step has inserted, before anything else was written of them
delete from windlass_job where seq >= :first and seq < :past
