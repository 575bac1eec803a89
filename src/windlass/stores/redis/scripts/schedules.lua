-- parts: asked base framed damage schedules
-- All schedules, or those of ask.ids that are here, in no order: {the time, schedules}.
local whole = {}
for _, id in ipairs(ask.ids or call('SMEMBERS', P .. 'schedules')) do
    if call('EXISTS', schedule_key(id)) == 1 then
        whole[#whole + 1] = shown_schedule(id)
    end
end
return array(2) .. number(now) .. array(#whole) .. table.concat(whole)
