import pytest

from tests.http.asgi import ask
from tests.http.given_app import LIMITED, an_app, secret_of
from tests.http.given_tokens import bearer
from tests.metrics.given import values
from windlass.api.roles import Role


@pytest.mark.parametrize(
    "who, status",
    [(Role.VIEW, 200), (Role.ADMIN, 200), (Role.PRODUCE, 403), (Role.WORK, 403), (LIMITED, 403), ("nobody", 401)],
)
async def test_whoever_may_view_everything_is_told_the_numbers(who: str, status: int) -> None:
    async with an_app() as given:
        reply = await ask(given.api, "GET", "/metrics", headers=[bearer(secret_of(who))])

    assert reply.status == status


async def test_the_numbers_are_in_the_text_format_and_of_all_queues() -> None:
    async with an_app() as given:
        await given.enqueued("mine", "yours", "yours")
        reply = await ask(given.api, "GET", "/metrics", headers=[bearer(secret_of(Role.VIEW))])

    told = values(reply.body)
    assert reply.header("content-type") == "text/plain; version=0.0.4; charset=utf-8"
    assert told["windlass_queue_depth{queue=yours,state=pending}"] == 2
    assert told["windlass_store_up"] == 1
