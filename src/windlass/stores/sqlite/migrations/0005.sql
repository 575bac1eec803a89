-- where the class of a failure is defined, and when an operator retried the job after this delivery
alter table windlass_delivery add column module text;
alter table windlass_delivery add column retried_at integer;

-- whether other jobs wait for the end of this one
alter table windlass_job add column has_followers integer not null default 0;
