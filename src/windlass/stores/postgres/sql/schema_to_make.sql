select set_config('windlass.schema_to_make', $1::text, true)
