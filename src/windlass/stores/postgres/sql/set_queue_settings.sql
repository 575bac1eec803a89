-- Fields of one layer of a queue's settings; other fields of the layer stay, unless it is damaged. Where nothing changes,
-- the revision stays too.
insert into windlass_queue as known (queue, declared, override, revision)
values (
    :queue::text,
    case when :layer::text = 'declared' then :settings::text::jsonb else '{}' end,
    case when :layer::text = 'override' then :settings::text::jsonb else '{}' end,
    1
)
on conflict (queue) do update set
    declared = case
        when :layer::text <> 'declared' then known.declared
        when jsonb_typeof(known.declared) = 'object' then known.declared || excluded.declared
        else excluded.declared
    end,
    override = case
        when :layer::text <> 'override' then known.override
        when jsonb_typeof(known.override) = 'object' then known.override || excluded.override
        else excluded.override
    end,
    revision = known.revision + 1
where case when :layer::text = 'declared' then known.declared else known.override end
    is distinct from case
        when jsonb_typeof(case when :layer::text = 'declared' then known.declared else known.override end) = 'object'
        then case when :layer::text = 'declared' then known.declared else known.override end || :settings::text::jsonb
    end
