select {standing_columns}
from windlass_job indexed by windlass_leased
where state = 'running' and lease_expires_at <= :until
    and (:queues is null or queue in (select value from json_each(:queues)))
    and (:workers is null or worker in (select value from json_each(:workers)))
order by lease_expires_at
limit :limit
