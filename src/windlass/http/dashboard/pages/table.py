"""All pages, in the order in which they are looked for."""

from collections.abc import Sequence
from typing import Any, Final

from windlass.http.dashboard.pages.audit import Audit
from windlass.http.dashboard.pages.dead import Dead
from windlass.http.dashboard.pages.job import OneJob
from windlass.http.dashboard.pages.jobs import JobList
from windlass.http.dashboard.pages.overview import Overview
from windlass.http.dashboard.pages.schedules import Schedules
from windlass.http.dashboard.pages.servers import Servers
from windlass.http.dashboard.view import View

VIEWS: Final[Sequence[type[View[Any]]]] = (Overview, JobList, OneJob, Schedules, Servers, Dead, Audit)
