set state = 'running',
    attempt = attempt + 1,
    delivery = delivery + 1,
    claimed_at = :now,
    lease_expires_at = :lease_expires_at,
    worker = :worker,
    progress = null,
    -- randomblob in the update itself: every claimed job gets a token of its own
    token = lower(hex(randomblob(16)))
