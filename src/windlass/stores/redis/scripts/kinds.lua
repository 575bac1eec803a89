-- parts: asked base
-- The kinds of the pending jobs of a queue, in no order; '' stands for raw jobs.
return cmsgpack.pack(call('SMEMBERS', P .. 'kinds|' .. ask.queue))
