-- once: asked base lines news places jobs steps leaving holders holds kv numbers damage ids enqueuing keyed schedules gate
-- Enqueue the jobs of a schedule and move its next run on, both or neither. The reply is {outcome, last job}, or a
-- conflict of keys or ids: {"conflict", key, holder, why}, {"conflict", id, queue, kind, tenant}.
if AWAY then
    return AWAY, false
end
local schedule = read_schedule(ask.id)

local function may_fire()
    if not schedule or schedule.revision ~= ask.revision then
        return false
    elseif not ask.tick then
        return true
    end
    return not schedule.paused and schedule.next_run_at and schedule.next_run_at <= now
end

local function unfinished(id)
    local job = id and read_job(id)
    return job and not is_finished(job)
end

if not may_fire() then
    return array(2) .. packed('lost') .. packed(schedule and schedule.last_job_id)
end
if #ask.jobs > 0 and schedule.overlap == 'skip' and unfinished(schedule.last_job_id) then
    if ask.tick then
        change_schedule(ask.id, {next_run_at = ask.next_run_at or false})
    end
    return array(2) .. packed('overlaps') .. packed(schedule.last_job_id)
end
local conflict = conflict_of(ask.jobs, {}, nil, nil)
if conflict then
    return cmsgpack.pack({'conflict', unpack(conflict)}), false
end
local fields = {}
local last_job_id = schedule.last_job_id
if #ask.jobs > 0 then
    local ids = put(ask.jobs, keyed)
    last_job_id = ids[#ids]
    fields.last_job_id = last_job_id
end
if ask.tick then
    fields.next_run_at = ask.next_run_at or false
    if #ask.jobs > 0 then
        fields.last_run_at = ask.tick
    end
end
change_schedule(ask.id, fields)
finish()
return array(2) .. packed('done') .. packed(last_job_id)
