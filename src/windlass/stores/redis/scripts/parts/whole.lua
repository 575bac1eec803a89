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
    local _, attempt, delivery, claimed_at, worker = nil, 0, 0, nil, nil
    if found.claim then
        _, attempt, delivery, claimed_at, worker = cmsgpack.unpack(found.claim)
    end
    return array(18)
        .. cmsgpack.pack(
            id, found.state or 'pending', tonumber(found.run_at), attempt, delivery, claimed_at,
            tonumber(found.finished_at), worker, found.error, found.result_codec, found.cancel == '1', found.key
        )
        .. OF_SIX .. found.head .. found.body .. lease_of(id, found) .. (found.result and bytes(found.result) or NIL)
        .. (found.progress or NIL) .. (found.more or NIL)
end

local function whole_list(key, is_there)
    local members = is_there and call('LRANGE', key, 0, -1) or {}
    return array(#members) .. table.concat(members)
end

-- a job, its history and its log, for an array that they are the first of
local function whole_records(id, found)
    return whole_job(id, found)
        .. whole_list(P .. 'history|' .. id, found.claim) .. whole_list(P .. 'log|' .. id, found.logged)
end
