-- parts: asked base fields whole
-- Jobs by id, each {job, history, log}, or nil where there is none.
local answers = {}
for at, id in ipairs(ask.ids) do
    local found = fields_of(P .. 'job|' .. id)
    answers[at] = found.head and array(3) .. whole_records(id, found) or NIL
end
return array(#answers) .. table.concat(answers)
