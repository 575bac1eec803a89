-- parts: asked base holders holds gate
-- Let keys, {name, holder, digest, when time frees it} each, be held here, those that are free.
if AWAY then
    return AWAY
end
for _, key in ipairs(ask.keys) do
    local held = {key[2], key[3], key[4]}
    if not is_over(held) and not holder(key[1]) then
        write_holder(key[1], held)
    end
end
return cmsgpack.pack(true)
