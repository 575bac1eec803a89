-- parts: asked base
-- The version of the layout of a store's keys, which with ask.create is written when there is none; nil without one.
local version = call('HGET', P .. 'meta', 'layout')
if not version and ask.create then
    call('HSET', P .. 'meta', 'layout', ask.layout)
    version = ask.layout
end
return version and number(version) or NIL
