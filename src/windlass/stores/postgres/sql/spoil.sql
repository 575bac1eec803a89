-- fails, so that the caller's transaction can only be rolled back
select ('Windlass: part of a batch that was refused is written, roll back, ' || clock_timestamp())::integer
