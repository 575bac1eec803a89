-- the row of the empty name counts the enqueues of the whole store
select enqueued_total from windlass_count where minute = 9223372036854775807 and queue = '' and kind = ''
