-- parts: asked base
-- The number of the last enqueue of a queue whose job is still here, or nil.
return number(call('ZRANGE', P .. 'jobs|' .. ask.queue, -1, -1, 'WITHSCORES')[2])
