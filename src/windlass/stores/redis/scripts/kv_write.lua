-- once: asked base kv gate
-- Write one value, or delete it when it is nil, if the key holds ask.expected (nil: nothing), or whatever it holds with
-- ask.any; the reply tells whether it was written.
if AWAY then
    return AWAY, false
end
if not ask.any and (call('HGET', P .. 'kv', ask.key) or nil) ~= ask.expected then
    return cmsgpack.pack(false)
end
write_kv({{ask.key, ask.value or false}})
return cmsgpack.pack(true)
