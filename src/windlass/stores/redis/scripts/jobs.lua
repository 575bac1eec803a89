-- parts: asked base fields whole body damage each framed matching merging page
-- A page of the jobs that match, in the order of their enqueue, past ask.after. The reply is {the last that was looked at,
-- whether there are more, jobs}.
local next_job, has_more = merged(lines_in_order(), ask.after and '(' .. int(ask.after) or '-inf', '+inf')
local last, _, found = page_of(ask.after, next_job, has_more)
return array(3) .. number(last) .. (has_more() and '\195' or '\194') .. array(#found) .. table.concat(found)
