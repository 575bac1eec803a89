insert into windlass_audit (at, actor, action, target, detail)
select entry.at, entry.actor, entry.action, entry.target, entry.detail
from unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[]) with ordinality
    as entry (at, actor, action, target, detail, place)
order by entry.place
