-- once: asked base lines news places holders holds successes damage each settled
-- Write that claims succeeded, as settle.lua would, for settlements that bring nothing along: nearly all do not.
return settle_each(function(settlement)
    return succeed(settlement[1], settlement[2], settlement[3], settlement[5], settlement[6])
end)
