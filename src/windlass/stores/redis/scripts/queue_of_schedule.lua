-- parts: asked base
-- The queue that a schedule is kept with, or nil.
return packed(call('HGET', P .. 'schedules_at', ask.id))
