-- the row of the empty name counts the enqueues of the whole store; it is paused while the store is left for another one
select enqueued_total, paused from windlass_count where minute = 9223372036854775807 and queue = '' and kind = ''
