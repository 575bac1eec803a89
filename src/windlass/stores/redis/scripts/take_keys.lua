-- parts: asked base holders holds gate
-- Let keys, {name, holder, digest, when time frees it} each, be held here, those that are free. The reply is what is said
-- of each whose holder here is damaged: that is left as it is.
if AWAY then
    return AWAY
end
local damaged = {}
for _, key in ipairs(ask.keys) do
    local held = {key[2], key[3], key[4]}
    if not is_over(held) then
        local other, why = holder(key[1])
        damaged[#damaged + 1] = why
        if not other and not why then
            write_holder(key[1], held)
        end
    end
end
return cmsgpack.pack(damaged)
