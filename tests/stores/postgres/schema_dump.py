"""The tables of a schema as text: the same for every version of Postgres, and for every way that led there.

python -m tests.stores.postgres.schema_dump > src/windlass/stores/postgres/schema.sql
"""

import asyncio
import sys
from typing import Any

from tests.postgres.cluster import cluster, schema_of
from tests.stores.postgres.migrating import bring_up
from windlass.stores.postgres.migrate import OURS

HEAD = "-- What all migrations make, in one piece: to be read, not to be run.\n\n"
TABLES = """
select c.oid, c.relname, coalesce(array_to_string(c.reloptions, ', '), '')
from pg_class c where c.relnamespace = to_regnamespace(quote_ident(%s)) and c.relkind = 'r' order by c.relname
"""
COLUMNS = """
select a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity::text,
    pg_get_expr(d.adbin, d.adrelid, true), a.attgenerated::text
from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = %s and a.attnum > 0 and not a.attisdropped order by a.attnum
"""
# not null is told by the column; from Postgres 18 on it is a constraint too
CONSTRAINTS = """
select conname, pg_get_constraintdef(oid, true) from pg_constraint
where conrelid = %s and contype <> 'n' order by contype desc, conname
"""
INDEXES = """
select pg_get_indexdef(i.indexrelid, 0, true) from pg_index i join pg_class c on c.oid = i.indexrelid
where i.indrelid = %s and i.indisvalid and not exists (select 1 from pg_constraint where conindid = i.indexrelid)
order by c.relname
"""
SEQUENCES = """
select c.relname from pg_class c where c.relnamespace = to_regnamespace(quote_ident(%s)) and c.relkind = 'S'
    and not exists (select 1 from pg_depend where objid = c.oid and deptype = 'i') order by c.relname
"""
OTHERS = """
select proname from pg_proc where pronamespace = to_regnamespace(quote_ident(%s))
union all
select t.tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid
where c.relnamespace = to_regnamespace(quote_ident(%s))
"""


def dump(schema: str) -> str:
    """Return every table of `schema` with its indexes, and every sequence."""
    assert cluster().run(OTHERS, [schema, schema]) == []
    tables = [_table(oid, name, settings) for oid, name, settings in cluster().run(TABLES, [schema])]
    sequences = [f"create sequence {name};" for (name,) in cluster().run(SEQUENCES, [schema])]
    return HEAD + "\n\n".join([*tables, *sequences]).replace(f"{schema}.", "") + "\n"


def made() -> str:
    """Return what all migrations make."""
    url = cluster().new_schema()
    asyncio.run(bring_up(url, OURS))
    return dump(schema_of(url))


def _table(oid: int, name: str, settings: str) -> str:
    columns = [_column(*row) for row in cluster().run(COLUMNS, [oid])]
    constraints = [f"constraint {title} {text}" for title, text in cluster().run(CONSTRAINTS, [oid])]
    inside = ",\n".join(f"    {part}" for part in [*columns, *constraints])
    ending = f") with ({settings});" if settings else ");"
    indexes = [f"{text};" for (text,) in cluster().run(INDEXES, [oid])]
    return "\n".join([f"create table {name} (", inside, ending, *indexes])


def _column(*row: Any) -> str:  # noqa: ANN401 - a row of `COLUMNS`
    name, kind, not_null, identity, default, generated = row
    words = [name, kind, "generated always as identity" * (identity == "a"), "not null" * not_null]
    if default:
        words.append(f"generated always as ({default}) stored" if generated == "s" else f"default {default}")
    return " ".join(word for word in words if word)


if __name__ == "__main__":
    sys.stdout.write(made())
