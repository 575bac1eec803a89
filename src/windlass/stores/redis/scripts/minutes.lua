-- parts: base
-- What happened in the minutes from ask.since up to ask.till: where to go on, if ask.most were not all of them, and
-- {minute, pairs of queue|kind|what and how often}. Only those are looked at that may be here: they are kept for eight
-- days, and a clock that was set back may have left some up to a day ahead of now.
local MINUTE = 60000000
local DAY = 1440 * MINUTE
local first = math.max(ask.since, now - now % MINUTE - 8 * DAY)
local last = math.min(ask.till, now + DAY)
local found = {}
local minute = first
while minute <= last and minute < first + ask.most * MINUTE do
    local fields = call('HGETALL', P .. 'minute|' .. int(minute))
    if #fields > 0 then
        found[#found + 1] = array(2) .. number(minute) .. cmsgpack.pack(fields)
    end
    minute = minute + MINUTE
end
return array(2) .. (minute <= last and number(minute) or NIL) .. array(#found) .. table.concat(found)
