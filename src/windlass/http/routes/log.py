"""The log and the progress of one job, as a stream that ends with it."""

from typing import Final

from starlette.types import Receive, Scope, Send

from windlass.api.calls import Nothing
from windlass.api.operations import LOG
from windlass.core.errors import JobNotFound, WindlassError
from windlass.core.ids import job_id
from windlass.core.job import Job
from windlass.http.asked import query_reader
from windlass.http.auth import Auth, Identity, check_roles, identity_of, reaches
from windlass.http.endpoint import seen_by
from windlass.http.following import Reader
from windlass.http.reply import refused
from windlass.http.shared import Shared
from windlass.http.streaming import Streaming


class LogEndpoint:
    """Streams the log of a job to one caller for each request: first all there is, then what is new."""

    operation: Final = LOG

    def __init__(self, shared: Shared, auth: Auth) -> None:
        self._shared = shared
        self._streaming = Streaming(shared, auth)
        self._read = query_reader(Nothing)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the job ends, the caller hangs up or the process stops."""
        identity = identity_of(scope)
        check_roles(identity, LOG.roles)
        self._read(scope["query_string"])
        # before the store is asked: a process that has its streams does no more for another one
        self._streaming.check_room(scope)
        try:
            job = await self._job(scope, identity)
        except WindlassError as error:
            await refused(error).send(send)
            return
        shared = self._shared
        reader = Reader(job, shared.client.clock, reaches=lambda job: reaches(identity, job.queue))
        with shared.following.readers.subscribed(job.id, reader):
            await self._streaming.stream(scope, receive, send, reader)

    async def _job(self, scope: Scope, identity: Identity) -> Job:
        await self._shared.open()
        wanted = job_id(scope["path_params"]["id"])
        [job] = await seen_by(identity, self._shared.client.store).get((wanted,))
        if job is None:
            raise JobNotFound(wanted)
        return job
