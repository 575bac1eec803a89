import pytest

from tests.job_samples import FULL
from windlass.api.jobs import job_of
from windlass.api.roles import Role
from windlass.core.job import FIELDS_WITH_SECRETS, Job
from windlass.http.auth import Identity
from windlass.http.shown import shown

JOB = FULL._replace(
    payload=b'{"password":"hunter2"}',
    result=b'{"token":"hunter2"}',
    headers={"api-key": "hunter2"},
    worker="hunter2",
    damage=None,
)


@pytest.mark.parametrize("role", Role)
def test_a_role_that_only_looks_sees_each_field_that_may_hold_secrets_with_these_hidden(role: Role) -> None:
    seen = job_of(shown(JOB, Identity("ada", frozenset({role})), as_bytes=True))

    changed = {name for name in Job._fields if getattr(seen, name) != getattr(JOB, name)}
    assert changed == (FIELDS_WITH_SECRETS if role in {Role.VIEW, Role.OPERATE} else set())
    assert not [name for name in changed if "hunter2" in str(getattr(seen, name))]
