-- the conditions of a `JobFilter`; what is null is left out
and (:queue::text is null or queue = :queue::text)
and (:kind::text is null or kind = :kind::text)
and (:state::text is null or state = :state::text)
and (:tenant::text is null or tenant = :tenant::text)
and (:schedule_id::text is null or schedule_id = :schedule_id::text)
and (:error::text is null or position(:error::text in last_error) > 0)
and (:since::timestamptz is null or created_at >= :since::timestamptz)
and (:until::timestamptz is null or created_at < :until::timestamptz)
and (
    :text::text is null
    or position(:text::text in id::text) > 0
    or position(:text::text in kind) > 0
    or position(:text::text in unique_key) > 0
    or position(:text::text in tenant) > 0
    or position(:text::text in last_error) > 0
)
and (:parent_id::uuid is null or parent_id = :parent_id::uuid)
and (:unique_key::text is null or unique_key = :unique_key::text)
and (:error_type::text is null or last_error = :error_type::text or starts_with(last_error, :error_type::text || ':'))
and (:payload_text::bytea is null or position(:payload_text::bytea in payload) > 0)
