-- parts: asked base
-- Write that a server is live, with the store's own time; of its first beat the store remembers when that was.
call('HSET', P .. 'servers', ask.id, ask.record)
call('HSETNX', P .. 'servers_started', ask.id, int(now))
call('ZADD', P .. 'servers_seen', int(now), ask.id)
return cmsgpack.pack(true)
