-- where the class of a failure is defined, and when an operator retried the job after this delivery
alter table windlass_delivery add column module text, add column retried_at timestamptz;
