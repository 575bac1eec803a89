insert into windlass_audit (at, actor, action, target, detail)
select entry.at, entry.actor, entry.action, entry.target, entry.detail
from unnest(:ats::timestamptz[], :actors::text[], :actions::text[], :targets::text[], :details::text[]) with ordinality
    as entry (at, actor, action, target, detail, place)
order by entry.place
