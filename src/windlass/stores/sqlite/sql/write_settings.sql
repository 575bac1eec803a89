insert into windlass_queue (queue, declared, override, revision) values (:queue, :declared, :override, :revision)
on conflict (queue) do update set
    declared = excluded.declared, override = excluded.override, revision = excluded.revision
