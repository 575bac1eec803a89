-- once: asked base lines news places jobs steps leaving sound_lines deliveries holders holds kv numbers damage ids enqueuing keyed ends each settled
-- Write how claims ended, each as one step of its own; one is {id, token, keep, verdict, two values that belong to it, then,
-- kv}, shorter where nothing follows. The reply has for each "done", "repeated", "lost", the conflict that refused it,
-- {key, holder, why} or {id, queue, kind, tenant}, or what is said of a damaged job, {id, why}; or it is true: all are done.
local ENDS = {succeeded = true, dead = true, cancelled = true}

-- whether a job to be enqueued then would be refused, once the verdict is written
local function refused(job, settlement, jobs)
    local keep, verdict, started = settlement[3], settlement[4], settlement[5]
    local holders = {}
    local ends = ENDS[verdict]
    if job.hold then
        if ends and job.hold[3] == 'finished' and holds_it(job) then
            holders[job.hold[1]] = false
        elseif verdict == 'released' and not started and may_take_back(job) then
            holders[job.hold[1]] = holder_for(job.hold, job.id)
        end
    end
    return conflict_of(jobs, holders, ends and not keep and job.id or nil, not ends and job.id or nil)
end

local function wait_again(job, run_at)
    stops_running(job, true)
    give_up(job)
    starts_waiting(job, run_at)
end

local write = {}

function write.succeeded(job, keep, result, codec)
    stops_running(job)
    ends(job, 'succeeded', keep, result and {'result', result, 'result_codec', codec})
end

function write.dead(job, keep, failure)
    end_delivery(job, 'failed', failure)
    stops_running(job)
    ends(job, 'dead', keep)
end

function write.cancelled(job, keep, reason)
    end_delivery(job, 'cancelled')
    stops_running(job)
    ends(job, 'cancelled', keep, {'error', reason})
end

function write.retry(job, _, delay, failure)
    end_delivery(job, 'failed', failure)
    count('retried', job.queue, job.kind)
    wait_again(job, later(delay))
end

function write.snoozed(job, _, delay)
    end_delivery(job, 'snoozed')
    job.attempt = job.attempt - 1
    wait_again(job, later(delay))
end

function write.released(job, _, started)
    end_delivery(job, 'released')
    job.attempt = job.attempt - 1
    if not started then
        take_back(job)
    end
    wait_again(job, job.run_at)
end

local function has_kv(jobs)
    for _, job in ipairs(jobs) do
        if job[11] then
            return true
        end
    end
    return false
end

local function settle(settlement)
    local keep, verdict, jobs, kv = settlement[3], settlement[4], settlement[7], settlement[8]
    local job, why = fence(settlement[1], settlement[2])
    if not job then
        return why
    end
    -- nothing is written of what is damaged, so all that is written after the verdict is looked at before it
    if kv or jobs and has_kv(jobs) then
        check_kv()
    end
    if jobs then
        local conflict = refused(job, settlement, jobs)
        if conflict then
            return conflict
        end
    end
    if ENDS[verdict] and keep and not can_end(job, verdict) or not ENDS[verdict] and not can_wait(job) then
        return 'lost'
    end
    write[verdict](job, keep, settlement[5], settlement[6])
    if jobs then
        put(jobs, keyed)
    end
    write_kv(kv)
    return 'done'
end

local reply, is_kept = settle_each(settle)
raise_if_broken()
return reply, is_kept
