select at, actor, action, target, detail from windlass_audit order by entry desc limit :limit::integer
