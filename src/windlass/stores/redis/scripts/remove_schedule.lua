-- once: base lines news schedules
-- Remove a schedule; the reply tells whether it was there.
if call('DEL', schedule_key(ask.id)) == 0 then
    return cmsgpack.pack(false)
end
call('SREM', P .. 'schedules', ask.id)
call('ZREM', P .. 'schedules_due', ask.id)
tell('schedules')
finish()
return cmsgpack.pack(true)
