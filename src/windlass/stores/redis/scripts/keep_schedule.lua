-- parts: asked base
-- Write down with which queue a schedule is kept, unless it is kept with one; the reply is the queue it is kept with.
call('HSETNX', P .. 'schedules_at', ask.id, ask.queue)
return cmsgpack.pack(call('HGET', P .. 'schedules_at', ask.id))
