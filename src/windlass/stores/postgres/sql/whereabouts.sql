select current_database()::text, current_schema()::text
