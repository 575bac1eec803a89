-- parts: asked base
-- The last parcel of a move and a queue that was unpacked here, {number, ids}, or nil.
return call('HGET', P .. 'unpacked', ask.move .. '|' .. ask.queue) or NIL
