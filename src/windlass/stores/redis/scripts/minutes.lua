-- parts: asked base
-- What was counted in the minutes from ask.since up to ask.till, in the hashes of ask.line: where to go on, if not all of
-- them were looked at, and {minute, pairs of what and how often}. No more are looked at than ask.most minutes, and ask.pairs
-- pairs or a few more. Only those are looked at that may be here: they are kept for eight days, and a clock that was set
-- back may have left some up to a day ahead of now.
local MINUTE = 60000000
local DAY = 1440 * MINUTE
local first = math.max(ask.since, now - now % MINUTE - 8 * DAY)
local last = math.min(ask.till, now + DAY)
local found = {}
local looked = 0
local minute = first
while minute <= last and minute < first + ask.most * MINUTE and looked < ask.pairs do
    local fields = call('HGETALL', P .. ask.line .. '|' .. int(minute))
    if #fields > 0 then
        found[#found + 1] = array(2) .. number(minute) .. cmsgpack.pack(fields)
        looked = looked + #fields / 2
    end
    minute = minute + MINUTE
end
return array(2) .. (minute <= last and number(minute) or NIL) .. array(#found) .. table.concat(found)
