-- once: asked base lines news places holds successes
-- Write that claims succeeded, as settle.lua would, for settlements that bring nothing along: nearly all do not.
local results = {}
local all_done, all_lost = true, true
for at, settlement in ipairs(ask.settlements) do
    results[at] = succeed(settlement[1], settlement[2], settlement[3], settlement[5], settlement[6])
    all_done = all_done and results[at] == 'done'
    all_lost = all_lost and results[at] == 'lost'
end
finish()
-- what was lost stays so: it needs no receipt
return cmsgpack.pack(all_done or results), not all_lost
