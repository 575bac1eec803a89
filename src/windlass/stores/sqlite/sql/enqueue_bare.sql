-- most jobs have nothing else, and each value that is not bound saves a hundredth of an enqueue
insert into windlass_job ({bare_columns})
values ({bare_values})
on conflict (id) do nothing
