-- How deliveries of a job ended: its history, and the details that are kept beside it.
local HISTORY_KEPT = 20

-- add to what stands beside the history of the last delivery; with a history that has gone nothing stands
local function add_detail(job, module, retried_at)
    local written, known = {}, {}
    for _, detail in ipairs(details_in(call('HGET', job.hash, 'details'))) do
        if detail[1] == job.delivery then
            known = detail
        elseif detail[1] > job.delivery - HISTORY_KEPT then
            written[#written + 1] = detail
        end
    end
    written[#written + 1] = {job.delivery, module or known[2] or false, retried_at or known[3] or false}
    call('HSET', job.hash, 'details', cmsgpack.pack(written))
end

-- add how the delivery that runs ended to the history
local function write_delivery(job, outcome, failure)
    local key = P .. 'history|' .. job.id
    local started_at = time_or(job.claimed_at, job.created_at)
    local worker = type(job.worker) == 'string' and job.worker or nil
    local written = array(7)
        .. cmsgpack.pack(job.delivery, job.attempt, started_at, now, worker, outcome)
        .. (failure and array(3) .. cmsgpack.pack(failure[1], failure[2], failure[3]) or NIL)
    call('RPUSH', key, written)
    call('LTRIM', key, -HISTORY_KEPT, -1)
end

-- write how the delivery that runs ended; of a success the job itself tells
local function end_delivery(job, outcome, failure)
    write_delivery(job, outcome, failure)
    if failure then
        call('HSET', job.hash, 'error', failure[4])
        if failure[5] then
            add_detail(job, failure[5])
        end
    end
end
