"""Writes how claims ended: the settlements of many callers go out together, in one script."""

from collections.abc import Awaitable, Sequence
from itertools import chain, islice

import msgspec

from windlass.core.errors import OutcomeUnknown
from windlass.core.requests import Settled, Settlement, SettleResult
from windlass.core.verdict import ToSucceeded
from windlass.kit.gather import Gather
from windlass.kit.request_names import of_kind
from windlass.stores.redis.caller import Caller
from windlass.stores.redis.enqueuer import doubt_of
from windlass.stores.redis.requests import Ask, settlement_of
from windlass.stores.redis.weight import MOST_TOGETHER, weight_of_settlements

_decode = msgspec.msgpack.Decoder().decode


class Settler:
    """Writes settlements under the keys of one prefix, each as one step of its own."""

    def __init__(self, caller: Caller) -> None:
        """Run through `caller`."""
        self._caller = caller
        self._together: Gather[Sequence[Settlement], list[SettleResult]] = Gather(
            self._settle_many, most=MOST_TOGETHER, weight=weight_of_settlements, patience=caller.patience
        )

    async def close(self) -> None:
        """Finish what was accepted."""
        await self._together.close()

    def settle(self, settlements: Sequence[Settlement], request_id: str | None) -> Awaitable[list[SettleResult]]:
        """Write how claims ended."""
        if request_id is None and settlements:
            return self._together.submit(settlements)
        return self._settle(settlements, request_id)

    async def _settle(self, settlements: Sequence[Settlement], request_id: str | None) -> list[SettleResult]:
        if not settlements:
            return []
        ask: Ask = {"settlements": [settlement_of(settlement) for settlement in settlements]}
        name = "succeed" if all(map(_is_plain_success, settlements)) else "settle"
        reply = await self._caller.once(name, ask, of_kind("settle", request_id), doubt=settlements[0].job_id)
        results = _decode(reply)
        if results is True:
            return [Settled.DONE] * len(settlements)
        return [Settled(one) if isinstance(one, str) else await self._caller.stored.refusal(*one) for one in results]

    async def _settle_many(self, batches: list[Sequence[Settlement]]) -> list[list[SettleResult] | BaseException]:
        try:
            done = iter(await self._settle(list(chain.from_iterable(batches)), None))
        except OutcomeUnknown as unknown:
            return [doubt_of(batch[0].job_id, unknown) for batch in batches]
        return [list(islice(done, len(batch))) for batch in batches]


def _is_plain_success(settlement: Settlement) -> bool:
    return isinstance(settlement.verdict, ToSucceeded) and not settlement.then and not settlement.kv
