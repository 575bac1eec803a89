-- A schedule is a hash; schedules_due has those that are not paused, by the time of their next run. Where queues are
-- spread each counts its revisions for itself, so they end in the number of the queue: no two schedules have the same.
local REVISIONS = 1024

local function schedule_key(id)
    return P .. 'schedule|' .. id
end

local function read_schedule(id)
    local found = call(
        'HMGET', schedule_key(id), 'revision', 'overlap', 'paused', 'next_run_at', 'last_job_id', 'declared'
    )
    return found[1] and {
        id = id,
        revision = tonumber(found[1]),
        overlap = found[2],
        paused = found[3],
        next_run_at = found[4] and tonumber(found[4]),
        last_job_id = found[5],
        declared = found[6],
    }
end

-- write fields of a schedule, where false is for what it no longer has; return its new revision
local function change_schedule(id, fields)
    local revision = call('INCR', P .. 'revision')
    if ask.queue_number then
        revision = revision * REVISIONS + ask.queue_number
    end
    call('HSET', schedule_key(id), 'revision', int(revision))
    for field, value in pairs(fields) do
        if value then
            call('HSET', schedule_key(id), field, value)
        else
            call('HDEL', schedule_key(id), field)
        end
    end
    local schedule = read_schedule(id)
    if schedule.next_run_at and not schedule.paused then
        call('ZADD', P .. 'schedules_due', int(schedule.next_run_at), id)
    else
        call('ZREM', P .. 'schedules_due', id)
    end
    return revision
end

-- forget a schedule; return whether it was there
local function drop_schedule(id)
    call('SREM', P .. 'schedules', id)
    call('ZREM', P .. 'schedules_due', id)
    return call('DEL', schedule_key(id)) == 1
end

local function whole_schedule(id)
    local found = call(
        'HMGET', schedule_key(id), 'record', 'revision', 'overlap', 'declared', 'paused', 'next_run_at', 'last_run_at',
        'last_job_id'
    )
    return framed_row(id, array(9)
        .. cmsgpack.pack(id) .. found[1] .. number(found[2]) .. packed(found[3]) .. (found[4] and '\195' or '\194')
        .. (found[5] and '\195' or '\194') .. number(found[6]) .. number(found[7]) .. packed(found[8]))
end

-- a schedule by itself, {id, its row}; a damaged one has no row
local function shown_schedule(id)
    local done, row = pcall(whole_schedule, id)
    if not done then
        damage(row)
        return framed_row(id)
    end
    return row
end
