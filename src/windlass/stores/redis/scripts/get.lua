-- parts: base fields whole
-- Jobs by id, each {job, history, log}, or nil where there is none.
local function list(key)
    local members = call('LRANGE', key, 0, -1)
    return array(#members) .. table.concat(members)
end

local answers = {}
for at, id in ipairs(ask.ids) do
    local found = fields_of(P .. 'job|' .. id)
    answers[at] = found.head and array(3) .. whole_job(id, found) .. list(P .. 'history|' .. id) .. list(P .. 'log|' .. id)
        or NIL
end
return array(#answers) .. table.concat(answers)
