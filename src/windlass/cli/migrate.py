"""`windlass migrate`: bring the schema of a store up to this release."""

import asyncio

import click

from windlass.cli.options import output_options, store_argument, store_options
from windlass.cli.output import print_json, say
from windlass.cli.reach import Choice, chosen_store
from windlass.connect import migrator
from windlass.core.migrating import Migrator, Standing
from windlass.exit_codes import ExitCode


@click.command()
@click.option("--plan", is_flag=True, help="Only tell what would be done; ends with 1 when there is something to do.")
@click.option("--status", is_flag=True, help="Only tell which version the schema has, and which this release needs.")
@click.option(
    "--sql", is_flag=True, help="Only print the SQL, or the commands of Redis, for somebody who runs them by hand."
)
@click.option(
    "--from",
    "since",
    type=click.IntRange(min=0),
    metavar="VERSION",
    help="With --sql: begin at this version, 0 for nothing, without looking at the store.",
)
@store_argument
@store_options
@output_options
def migrate(
    *, plan: bool, status: bool, sql: bool, since: int | None, app: str | None, url: str | None, as_json: bool
) -> None:
    """Bring the schema of a store up to this release.

    Each step happens as a whole or not at all, and one that was killed goes on where it stopped. Of many at once one
    works and the others wait for it. Processes of the release before that have the store open go on; stop and start
    them when it suits you. A store that is current already is left as it is.

    In a Postgres database or a Redis without a schema one is made. A SQLite file that is not there is not made.

    \b
        windlass migrate --url sqlite:///jobs.db
        windlass migrate --plan --url sqlite:///jobs.db
        windlass migrate --sql --from 0 --url 'postgres://shop@db/shop?schema=jobs'
    """  # noqa: D301 - click's mark for lines that are to be left as they are
    _check_use(plan=plan, status=status, sql=sql, since=since)
    store = chosen_store(Choice(app, url))
    # a store of somebody's own sees to its schema itself
    found = migrator(store) if isinstance(store, str) else None
    if found is None:
        _tell_nothing_to_do(as_json=as_json)
    elif status:
        _tell_status(asyncio.run(found.look()), as_json=as_json)
    elif plan:
        _tell_plan(asyncio.run(found.look()), as_json=as_json)
    elif sql:
        _tell_script(asyncio.run(_script(found, since)), as_json=as_json)
    else:
        _tell_applied(asyncio.run(found.apply()), as_json=as_json)


def _check_use(*, plan: bool, status: bool, sql: bool, since: int | None) -> None:
    if plan + status + sql > 1:
        message = "--plan, --status and --sql are three questions: ask one at a time"
        raise click.UsageError(message)
    if since is not None and not sql:
        message = "--from tells where the SQL begins: it goes with --sql"
        raise click.UsageError(message)


async def _script(found: Migrator, since: int | None) -> str:
    if since is not None:
        return found.script(since)
    standing = await found.look()
    standing.check_not_newer()
    return found.script(standing.known - len(standing.pending))


def _tell_nothing_to_do(*, as_json: bool) -> None:
    if as_json:
        print_json({"place": None, "found": None, "known": None, "pending": []})
    else:
        say("this store has no schema: there is nothing to migrate")


def _tell_status(standing: Standing, *, as_json: bool) -> None:
    if as_json:
        print_json(standing)
    elif standing.found is None:
        say(f"no schema in {standing.place}; this release works with version {standing.known}")
    elif standing.found > standing.known:
        say(f"version {standing.found} in {standing.place}, newer than this release knows ({standing.known})")
    else:
        say(f"{_version(standing)} in {standing.place}")


def _tell_plan(standing: Standing, *, as_json: bool) -> None:
    standing.check_not_newer()
    if as_json:
        print_json(standing)
    elif not standing.pending:
        say(f"the schema is current: {_version(standing)}")
    else:
        for number in standing.pending:
            say(f"migration {number} would be applied to {standing.place}")
    if standing.pending:
        raise click.exceptions.Exit(ExitCode.FAILED)


def _tell_script(text: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"sql": text})
    else:
        click.echo(text, nl=False)


def _tell_applied(before: Standing, *, as_json: bool) -> None:
    version = f"version {before.known} of {before.known}"
    if as_json:
        print_json({"schema": version, "applied": before.pending})
        return
    for number in before.pending:
        say(f"migration {number} is applied")
    say(f"the schema is current: {version}")


def _version(standing: Standing) -> str:
    return f"version {standing.found} of {standing.known}"
