insert into windlass_audit (at, actor, action, target, detail) values (:at, :actor, :action, :target, :detail)
