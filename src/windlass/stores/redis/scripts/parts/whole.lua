-- A job as it is shown: {id, state, run_at, attempt, delivery, claimed_at, finished_at, worker, error, the result's codec,
-- cancel, key, head, body, lease, result, progress, more}.

-- the end of the lease of a job that runs: it is kept as its place in line, and nowhere else
local function lease_of(id, found)
    if found.state ~= 'running' then
        return NIL
    end
    local _, queue = cmsgpack.unpack(found.head)
    return number(call('ZSCORE', P .. 'leased|' .. queue, id))
end

local function whole_job(id, found)
    local token, attempt, delivery, claimed_at, worker = nil, 0, 0, nil, nil
    if found.claim then
        token, attempt, delivery, claimed_at, worker = cmsgpack.unpack(found.claim)
        assert(not token or #token >= 0, 'its claim is damaged')
    end
    assert(not found.hold or type(cmsgpack.unpack(found.hold)) == 'table', 'its hold is damaged')
    local run_at, finished_at = tonumber(found.run_at), tonumber(found.finished_at)
    assert((run_at or not found.run_at) and (finished_at or not found.finished_at), 'its time is damaged')
    return array(18)
        .. cmsgpack.pack(
            id, found.state or 'pending', run_at, attempt, delivery, claimed_at,
            finished_at, worker, found.error, found.result_codec, found.cancel == '1', found.key
        )
        .. OF_SIX .. found.head .. found.body .. lease_of(id, found) .. (found.result and bytes(found.result) or NIL)
        .. (found.progress or NIL) .. (found.more or NIL)
end

local function whole_list(key, is_there)
    local members = is_there and call('LRANGE', key, 0, -1) or {}
    return array(#members) .. table.concat(members)
end

local function whole_details(found)
    local details = details_in(found.details)
    return #details > 0 and cmsgpack.pack(details) or NIL
end

-- a job, its history, its log and the details of its deliveries, for an array that they are the first of; one that was
-- never claimed, and was retried, has a history too
local function whole_records(id, found)
    return whole_job(id, found)
        .. whole_list(P .. 'history|' .. id, found.claim or found.logged)
        .. whole_list(P .. 'log|' .. id, found.logged) .. whole_details(found)
end
