-- parts: asked base holders
-- Up to ask.limit keys that time alone frees, and has not yet: {{name, holder, when, digest} for each, what is said of each
-- whose holder is damaged}.
local PAGE = 1000
local found = {}
local damaged = {}
local from = 0
repeat
    local page = call('ZRANGE', P .. 'timed', '(' .. int(now), '+inf', 'BYSCORE', 'LIMIT', from, PAGE)
    for _, name in ipairs(page) do
        -- a server that is allowed to forget may have forgotten it
        if #found < ask.limit then
            local held, why = holder(name)
            damaged[#damaged + 1] = why
            if held and held[3] then
                found[#found + 1] = array(4) .. cmsgpack.pack(name, held[1]) .. number(held[3]) .. bytes(held[2])
            end
        end
    end
    from = from + #page
until #page < PAGE or #found >= ask.limit
return array(2) .. array(#found) .. table.concat(found) .. cmsgpack.pack(damaged)
