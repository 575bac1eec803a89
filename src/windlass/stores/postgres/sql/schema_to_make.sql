select set_config('windlass.schema_to_make', :schema::text, true)
