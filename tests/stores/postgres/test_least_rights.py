"""The role that works in the stores of the tests has what the page lists, and nothing of that can be left out."""

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import pytest

from tests.postgres.cluster import GIVEN, cluster, schema_of
from tests.postgres.ready import ready_schema
from tests.postgres.rights import Right, listed, renamed
from tests.postgres.roles import POOLED_RUN, RUN, user_of
from tests.stores.postgres.moves.moving import Mover
from tests.stores.postgres.racing import opened
from tests.stores.postgres.test_faults_sqlstates import LOOKS, WRITES
from windlass import StoreUnavailable
from windlass.core.requests import KvWrite
from windlass.stores.postgres.moves.marks import Leases, raise_mark

# what was granted to a role in a schema and on this database, in the words of the page
HELD: Final = """
with things (place, acl) as (
    select 'database shop', datacl from pg_database where datname = current_database()
    union all
    select 'schema jobs', nspacl from pg_namespace where nspname = %(schema)s
    union all
    select case relkind when 'S' then 'sequence ' else '' end || 'jobs.' || relname, relacl
    from pg_class
    where relnamespace = %(schema)s::regnamespace
)
select lower(granted.privilege_type), things.place
from things
cross join aclexplode(things.acl) as granted
where granted.grantee = %(role)s::regrole
"""
STANDING: Final = """
select
    rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls,
    array(select roleid::regrole::text from pg_auth_members where member = pg_roles.oid),
    has_schema_privilege(oid, %(schema)s, 'create'),
    exists (select from pg_class where relnamespace = %(schema)s::regnamespace and relowner = pg_roles.oid)
from pg_roles
where rolname = %(role)s
"""


@pytest.fixture
def url() -> Iterator[str]:
    if cluster().runs_as is None:
        pytest.skip("no role can be made in the server of WINDLASS_TEST_POSTGRES")
    with ready_schema() as url:
        yield url


async def do_all(url: str) -> None:
    """Make every call of a store, with something to do for each."""
    async with opened(url) as store:
        for number, scenario in enumerate(WRITES):
            call = await scenario(store, f"name{number}")
            await call(store)
        await store.kv_write(KvWrite(b"gone", None))
        for look in LOOKS.values():
            await look(store)
    await raise_the_mark_of_leases(url)


async def raise_the_mark_of_leases(url: str) -> None:
    """Do what a store does in the background when many jobs have come and gone."""
    mover = Mover(url)
    try:
        await mover.do(lambda _: raise_mark(Leases(), datetime.now(UTC)))
    finally:
        await mover.connections.close()


async def test_the_role_that_works_has_exactly_the_rights_that_the_page_lists(url: str) -> None:
    names = {"schema": schema_of(url), "role": user_of(url)}

    held = cluster().run(HELD, names)

    assert sorted(Right(*row) for row in held) == sorted(listed())
    assert cluster().run(STANDING, names) == [(False, [], False, False)]
    await do_all(url)


@pytest.mark.skipif(GIVEN is not None, reason="roles for PgBouncer are made in a server of our own")
def test_the_role_that_works_through_pgbouncer_has_the_same(url: str) -> None:
    names = {"schema": schema_of(url), "role": POOLED_RUN}

    assert cluster().run(HELD, names) == []
    assert cluster().run(STANDING, names) == [(False, [RUN], False, False)]


@pytest.mark.skipif(GIVEN is not None, reason="what everybody may do in a given database is not ours to say")
def test_nobody_has_a_right_here_only_because_everybody_has_it(url: str) -> None:
    everybodys = (
        "select has_schema_privilege(%(role)s, 'public', 'usage'),"
        " has_database_privilege(%(role)s, current_database(), 'create, temporary')"
    )

    assert cluster().run(everybodys, {"role": user_of(url)}) == [(False, False)]


@pytest.mark.parametrize("right", listed(), ids=" on ".join)
async def test_no_right_of_the_page_can_be_left_out(url: str, right: Right) -> None:
    kind, name = re.findall(r"(?:(\w+) )?(?:jobs\.)?(\w+)", right.place)[-1]
    if GIVEN and kind == "database":
        pytest.skip("what everybody may do in a given database is not ours to say")

    with without(right, url), pytest.raises(StoreUnavailable, match="permission denied") as refused:
        await do_all(url)

    assert f"for {kind or 'table'} {in_this_test(name, url)}" in str(refused.value).replace('"', "")


@contextmanager
def without(right: Right, url: str) -> Generator[None]:
    """Take a right away from the role of `url`, also where it has it as everybody does."""
    place = in_this_test(right.place, url)
    roles = user_of(url) + (", public" if "database" in place else "")
    cluster().run(f"revoke {right.privilege} on {place} from {roles}".encode())
    try:
        yield
    finally:
        cluster().run(f"grant {right.privilege} on {place} to {roles}".encode())


def in_this_test(text: str, url: str) -> str:
    [(database,)] = cluster().run("select current_database()")
    return renamed(text, {"shop": database, "jobs": schema_of(url)})
