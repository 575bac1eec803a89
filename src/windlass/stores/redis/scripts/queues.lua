-- parts: asked base
-- The names of all queues, in no order.
return cmsgpack.pack(call('SMEMBERS', P .. 'queues'))
