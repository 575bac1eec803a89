"""`windlass migrate`: bring the schema of a store up to this release."""

import asyncio

import click

from windlass.cli.options import output_options, store_options
from windlass.cli.output import print_json, say
from windlass.cli.reach import Choice, reached


@click.command()
@store_options
@output_options
def migrate(*, app: str | None, url: str | None, as_json: bool) -> None:
    """Bring the schema of a store up to this release.

    All of it happens or nothing. Processes of the release before that have the store open go on; stop and start them
    when it suits you. A store that is current already is left as it is.

    \b
        windlass migrate --url sqlite:///jobs.db
    """  # noqa: D301 - click's mark for lines that are to be left as they are
    schema = asyncio.run(_migrate(Choice(app, url)))
    if as_json:
        print_json({"schema": schema})
    else:
        say(f"the schema is current: {schema}")


async def _migrate(choice: Choice) -> str:
    async with reached(choice, create=False, migrate=True) as (client, _):
        findings = await client.store.check()
        return next(finding.message for finding in findings if finding.name == "schema")
