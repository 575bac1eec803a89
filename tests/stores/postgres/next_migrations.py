"""Migrations that could come next: a new column and table, then an index that is built while work goes on."""

from typing import Final

from windlass.stores.postgres.migrate import SCHEMA, Migrations
from windlass.stores.postgres.script import OUTSIDE
from windlass.stores.postgres.statements import migration, new_migration

TABLE: Final = """\
alter table windlass_job add column colour text;
-- it has a row for each time that this was done
create table windlass_next (n integer);
insert into windlass_next values (1);
"""
INDEX: Final = f"""\
{OUTSIDE}

-- one that was killed leaves an index that nobody may use
drop index concurrently if exists windlass_colour;
create index concurrently windlass_colour on windlass_job (colour) where colour is not null;
"""
LATER: Final = {SCHEMA + 1: TABLE, SCHEMA + 2: INDEX}


def up_to(known: int) -> Migrations:
    """Return the migrations of a release that knows the schema up to `known`."""
    return Migrations(
        known,
        text=lambda number: LATER.get(number) or migration(number),
        anew=lambda number: LATER.get(number) or new_migration(number),
    )


ONE_MORE: Final = up_to(SCHEMA + 1)
TWO_MORE: Final = up_to(SCHEMA + 2)
