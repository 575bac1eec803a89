"""Enqueues two jobs by Django and psycopg2, and commits one; run in a process where there is no psycopg 3."""

import sys
from typing import Any
from urllib.parse import urlsplit

# Django takes the newer one when it is there
absent: Any = None
sys.modules["psycopg"] = absent

import django  # noqa: E402 - after the above
from django.conf import settings  # noqa: E402
from django.db import connection, transaction  # noqa: E402

import windlass  # noqa: E402


def main(url: str) -> None:
    parts = urlsplit(url)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path[1:],
        "USER": parts.username,
        "HOST": parts.hostname,
        "PORT": parts.port,
    }
    settings.configure(DATABASES={"default": database}, USE_TZ=True)
    django.setup()
    with windlass.connect_sync(url) as client:
        with transaction.atomic():
            client.enqueue("email", b"rolled back", connection=connection)
            transaction.set_rollback(True)
        with transaction.atomic():
            client.enqueue("email", b"committed", unique="key", connection=connection)
    assert type(connection.connection).__module__.startswith("psycopg2")
    connection.close()


main(sys.argv[1])
