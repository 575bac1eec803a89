-- once: asked base lines news places holds successes
-- Write that claims succeeded, as settle.lua would, for settlements that bring nothing along: nearly all do not.
local results = {}
local all_done = true
for at, settlement in ipairs(ask.settlements) do
    results[at] = succeed(settlement[1], settlement[2], settlement[3], settlement[5], settlement[6])
    all_done = all_done and results[at] == 'done'
end
finish()
return cmsgpack.pack(all_done or results)
