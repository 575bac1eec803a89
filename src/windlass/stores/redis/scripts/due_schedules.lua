-- parts: asked base framed damage schedules
-- Up to ask.limit schedules that are due, the longest first, and when the next one is that is not among them. Of those
-- that code declares only the ones in the set ask.declared count. The reply is {the time, due, next time}.
local PAGE = 100
local due = {}
local next_run_at = nil
local from = 0
repeat
    local page = call('ZRANGE', P .. 'schedules_due', from, from + PAGE - 1, 'WITHSCORES')
    for at = 1, #page, 2 do
        local id, run_at = page[at], tonumber(page[at + 1])
        if not next_run_at and (ask.declared[id] or not call('HGET', schedule_key(id), 'declared')) then
            if run_at <= now and #due < ask.limit then
                due[#due + 1] = shown_schedule(id)
            else
                next_run_at = run_at
            end
        end
    end
    from = from + PAGE
until next_run_at or #page < 2 * PAGE
return array(3) .. number(now) .. array(#due) .. table.concat(due) .. number(next_run_at)
