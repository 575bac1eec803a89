select id::text, state, cancel_requested, token::text from windlass_job where id = any(:ids::uuid[])
