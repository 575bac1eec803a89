-- parts: asked base
-- Take a server out.
call('HDEL', P .. 'servers', ask.id)
call('HDEL', P .. 'servers_started', ask.id)
call('ZREM', P .. 'servers_seen', ask.id)
return cmsgpack.pack(true)
