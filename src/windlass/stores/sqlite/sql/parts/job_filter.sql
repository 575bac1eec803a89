-- the conditions of a `JobFilter`; what is null is left out
and (:queue is null or queue = :queue)
and (:kind is null or kind = :kind)
and (:state is null or state = :state)
and (:tenant is null or tenant = :tenant)
and (:schedule_id is null or schedule_id = :schedule_id)
and (:error is null or instr(last_error, :error) > 0)
and (:parent_id is null or parent_id = :parent_id)
and (:unique_key is null or unique_key = :unique_key)
and (:error_type is null or last_error = :error_type or instr(last_error, :error_type || ':') = 1)
and (:since is null or created_at >= :since)
and (:until is null or created_at < :until)
and (
    :text is null
    or instr(id, :text) > 0
    or instr(kind, :text) > 0
    or instr(unique_key, :text) > 0
    or instr(tenant, :text) > 0
    or instr(last_error, :text) > 0
)
and (:payload_text is null or instr(payload, :payload_text) > 0)
