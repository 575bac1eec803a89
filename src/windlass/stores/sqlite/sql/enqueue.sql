-- as `enqueue_bare.sql`, and more
insert into windlass_job ({enqueued_columns})
values ({enqueued_values})
on conflict (id) do nothing
