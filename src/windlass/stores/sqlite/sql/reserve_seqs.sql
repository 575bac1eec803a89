-- the row of the empty name counts the enqueues of the whole store
update windlass_count set enqueued_total = enqueued_total + ?
where minute = 9223372036854775807 and queue = '' and kind = ''
returning enqueued_total
