select paused from windlass_count where minute = 9223372036854775807 and queue = :queue and kind = ''
