-- parts: asked base fields whole damage each framed
-- Jobs by id, each {id, {job, history, log, details}}, or nil where there is none. Once they are as large as ask.bytes no
-- more are, and the caller asks for the rest.
local answers = {}
local size = 0

local function get(id)
    local found = fields_of(P .. 'job|' .. id)
    return next(found) ~= nil and framed_row(id, array(4) .. whole_records(id, found)) or NIL
end

each(ask.ids, answers, function(id)
    if size >= ask.bytes then
        return nil
    end
    local answer = get(id)
    size = size + #answer
    return answer
end, function(id)
    return framed_row(id)
end)
return array(#answers) .. table.concat(answers)
