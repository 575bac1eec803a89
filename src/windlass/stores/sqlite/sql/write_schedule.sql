insert or replace into windlass_schedule ({schedule_columns})
values ({schedule_values})
