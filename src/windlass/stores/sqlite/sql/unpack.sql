insert into windlass_job ({moved_columns})
values ({moved_values})
