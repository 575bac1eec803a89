"""Migrations as one script, for people who run SQL themselves."""

from typing import Final

from windlass.stores.postgres.migrate import LOCK_TIMEOUT, Migrations
from windlass.stores.postgres.script import is_outside

HEAD: Final = """\
-- Brings the schema of Windlass from version {since} to version {known}:
--     psql -X -v ON_ERROR_STOP=1 -f SCRIPT DATABASE
-- Each step looks first whether it is its turn. After one that was stopped, make the script anew.
"""
# not `if not exists`: that needs the right to make schemas also where this one is there
SCHEMA: Final = """\
do $$ begin if to_regnamespace('"{schema}"') is null then create schema "{schema}"; end if; end $$;
"""
PATH: Final = """\
set search_path to "{schema}", pg_temp;
"""
LOCKS: Final = """\
set lock_timeout = '{timeout}';
"""
ALONE: Final = """\
select pg_advisory_xact_lock(hashtextextended('windlass migrate ' || coalesce(current_schema(), ''), 0));
"""
TURN: Final = """\
do $$
begin
    if {found} is distinct from {before} then
        raise exception 'Windlass: this step is for a schema of version {before}; make the script anew';
    end if;
end $$;
"""
NONE_BEFORE: Final = "(select count(*) from pg_class where oid = to_regclass('windlass_meta'))"
FOUND: Final = "(select max(value::integer) from windlass_meta where name in ('schema', 'making'))"
VERSION: Final = """\
insert into windlass_meta (name, value) values ('schema', '{number}')
    on conflict (name) do update set value = excluded.value;
delete from windlass_meta where name = 'making';
"""


def by_hand(schema: str | None, migrations: Migrations, since: int) -> str:
    """Return the SQL that brings a schema of version `since`, 0 for none, up to the last migration."""
    if since >= migrations.known:
        return f"-- The schema is current: version {since}. There is nothing to do.\n"
    parts = [HEAD.format(since=since, known=migrations.known)]
    if schema is not None:
        # a name of letters, digits and underscores: nothing in it could end the quotes
        parts += [text.format(schema=schema) for text in ((SCHEMA, PATH) if since == 0 else (PATH,))]
    parts.append(LOCKS.format(timeout=LOCK_TIMEOUT))
    text = migrations.anew if since == 0 else migrations.text
    parts += [_step(text(number), number) for number in range(since + 1, migrations.known + 1)]
    return "\n".join(parts)


def _step(text: str, number: int) -> str:
    turn = TURN.format(found=FOUND if number > 1 else NONE_BEFORE, before=number - 1)
    body = f"{turn}\n{text.strip()}\n\n{VERSION.format(number=number)}"
    return body if is_outside(text) else f"begin;\n\n{ALONE}\n{body}\ncommit;\n"
