-- End a job: its key is free unless held by time, and its record goes at once if it is not kept.
local function end_job(job, state, keep)
    free(job)
    give_up(job)
    count(state, job.queue, job.kind)
    tell('ends')
    if not keep then
        remove_job(job)
        return
    end
    leave(job)
    job.state = state
    call('HSET', job.hash, 'state', state, 'finished_at', int(now))
    join(P .. 'ended|' .. job.queue .. '|' .. state, int(now), job.id)
    if state == 'dead' then
        join(P .. 'dead|' .. job.queue, int(job.seq), job.id)
    end
end
