-- parts: asked base fields whole
-- Jobs by id, each {job, history, log}, or nil where there is none. Once they are as large as ask.bytes no more are, and the
-- caller asks for the rest.
local answers = {}
local size = 0
for at, id in ipairs(ask.ids) do
    if size >= ask.bytes then
        break
    end
    local found = fields_of(P .. 'job|' .. id)
    answers[at] = found.head and array(3) .. whole_records(id, found) or NIL
    size = size + #answers[at]
end
return array(#answers) .. table.concat(answers)
