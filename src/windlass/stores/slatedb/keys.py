"""The layout of the keys: every key of a database is made here, and nowhere else.

The first byte is the family. Families that are read in order have the time, or what else orders them, behind the name,
so that each service reads from the front and stops at what is not due yet:

| family | key | value |
|---|---|---|
| `m` | what | the layout, the counters, the owner, the last write, where the jobs go |
| `j` | job id | the record of a job, see `records` |
| `p` | job id, which | a large part of a record, apart from it |
| `f` | job id | the record of a job as it was found damaged; `retry` reads it again |
| `o` | sequence number | the id of the job that was enqueued so |
| `l` | queue, kind, priority, run time, sequence number, job id | nothing: a pending job in its line |
| `d` | queue, run time, sequence number, job id | nothing: a scheduled job |
| `r` | queue, end of the lease, sequence number, job id | nothing: a running job |
| `e` | queue, state, time of the end, sequence number, job id | nothing: a finished job |
| `q` | queue | its counts, and its settings, such as whether it is paused |
| `t` | minute, queue, kind | what happened in that minute |
| `h` | minute, queue, kind | how long attempts took in that minute |
| `u` | name of a unique key | who holds it |
| `x` | time, name of a unique key | nothing: time alone frees it then |
| `k` | the caller's key | the caller's value |
| `s` | schedule id | a schedule |
| `w` | server id | a server |
| `n` | server id | the ownership under which a server of the owner beats |
| `c` | name of a lock | who has it, and until when |
| `a` | kind of call, request id | what was answered |
| `b` | time, kind of call, request id | nothing: when that was |
| `z` | number | what a person did |
| `v` | move, queue | the last parcel of jobs from another store |

A name is followed by two bytes that end it, and a zero byte within one is written as two others: no name can reach into
the keys of another. Numbers have eight bytes (a priority four), the greatest first, so that keys sort as they do.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from struct import Struct
from typing import Final

from windlass.core.ids import JobId
from windlass.core.looks import Death
from windlass.core.states import State

LAYOUT: Final = b"mlayout"
COUNTERS: Final = b"mcounters"
OWNER: Final = b"mowner"
LAST: Final = b"mlast"
MOVED: Final = b"mmoved"

JOBS: Final = b"j"
PARTS: Final = b"p"
DAMAGED: Final = b"f"
ORDER: Final = b"o"
LINES: Final = b"l"
DUE: Final = b"d"
LEASES: Final = b"r"
ENDS: Final = b"e"
QUEUES: Final = b"q"
MINUTES: Final = b"t"
TIMINGS: Final = b"h"
HOLDS: Final = b"u"
HOLD_TIMES: Final = b"x"
VALUES: Final = b"k"
SCHEDULES: Final = b"s"
SERVERS: Final = b"w"
SERVED_UNDER: Final = b"n"
LOCKS: Final = b"c"
RECEIPTS: Final = b"a"
RECEIPT_TIMES: Final = b"b"
AUDIT: Final = b"z"
PARCELS: Final = b"v"

_END: Final = b"\0\1"
_RAW, _KIND = b"\1", b"\2"
_STATES: Final = {State.SUCCEEDED: b"s", State.DEAD: b"d", State.CANCELLED: b"c"}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_BIAS: Final = 2**63
_ID: Final = 16
_NUMBER: Final = Struct(">Q")
_PLACE: Final = Struct(">QQ")
_LINE_PLACE: Final = Struct(">IQQ")


def number(value: int) -> bytes:
    """Write a number so that it sorts."""
    return _NUMBER.pack(value)


def number_of(key: bytes) -> int:
    """Return the number that a key ends with."""
    return int.from_bytes(key[-8:], "big")


def name(text: str) -> bytes:
    """Write a name so that none reaches into another."""
    return text.encode(errors="surrogatepass").replace(b"\0", b"\0\xff") + _END


def names_of(encoded: bytes) -> list[str]:
    """Return the names that follow each other here."""
    parts = encoded.removesuffix(_END).split(_END)
    return [part.replace(b"\0\xff", b"\0").decode(errors="surrogatepass") for part in parts]


def micros(at: datetime) -> int:
    """Return a time as a number that sorts as times do, whatever the year."""
    return (at - _EPOCH) // _MICROSECOND + _BIAS


def moment(number_of_micros: int) -> datetime:
    """Return the time that `micros` was given."""
    return _EPOCH + timedelta(microseconds=number_of_micros - _BIAS)


def after(prefix: bytes) -> bytes:
    """Return the first key behind all keys that begin with `prefix`."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1])


def id_bytes(job_id: JobId) -> bytes:
    """Return a job id as it stands in keys."""
    return bytes.fromhex(job_id.replace("-", ""))


def is_id(text: str) -> bool:
    """Whether a text is a job id, which can stand in keys."""
    try:
        return id_of(id_bytes(JobId(text))) == text
    except ValueError:
        return False


def id_bytes_of(key: bytes) -> bytes:
    """Return the bytes of the job id that a key, or the value of an order key, ends with."""
    return key[-_ID:]


def id_of(key: bytes) -> JobId:
    """Return the job id that a key, or the value of an order key, ends with."""
    h = key[-_ID:].hex()
    return JobId(f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}")


def job(job_id: JobId) -> bytes:
    """Where the record of a job is."""
    return JOBS + id_bytes(job_id)


def part(job_id: JobId, which: bytes) -> bytes:
    """Where a large part of the record of a job is; `which` is one letter."""
    return PARTS + id_bytes(job_id) + which


def damaged(job_id: JobId) -> bytes:
    """Where the record of a job is kept as it was found damaged."""
    return DAMAGED + id_bytes(job_id)


def order(seq: int) -> bytes:
    """Where the id of a job is, by its place in the order of all enqueues."""
    return ORDER + _NUMBER.pack(seq)


@lru_cache(maxsize=4096)
def line(queue: str, kind: str | None) -> bytes:
    """What the keys of the pending jobs of a queue and kind begin with; None stands for raw jobs."""
    return LINES + name(queue) + (_RAW if kind is None else _KIND + name(kind))


@lru_cache(maxsize=4096)
def due(queue: str) -> bytes:
    """What the keys of the scheduled jobs of a queue begin with."""
    return DUE + name(queue)


@lru_cache(maxsize=4096)
def leases(queue: str) -> bytes:
    """What the keys of the running jobs of a queue begin with."""
    return LEASES + name(queue)


@lru_cache(maxsize=4096)
def ends(queue: str, state: State) -> bytes:
    """What the keys of the finished jobs of a queue and state begin with."""
    return ENDS + name(queue) + _STATES[state]


def index(queue: str, state: State) -> bytes:
    """What the keys of all jobs of a queue and state begin with, of whatever kind."""
    match state:
        case State.PENDING:
            return LINES + name(queue)
        case State.SCHEDULED:
            return due(queue)
        case State.RUNNING:
            return leases(queue)
        case _:
            return ends(queue, state)


def line_place(priority: int, run_at: datetime, seq: int, job_id: JobId) -> bytes:
    """What follows in the key of a pending job: it sorts as jobs are claimed."""
    return _LINE_PLACE.pack(priority, micros(run_at), seq) + id_bytes(job_id)


def place(at: datetime, seq: int, job_id: JobId) -> bytes:
    """What follows in the key of any other job, with the time that counts there."""
    return _PLACE.pack(micros(at), seq) + id_bytes(job_id)


def until(index: bytes, at: datetime) -> bytes:
    """Return the first key behind those of an index, not of a line, whose time is not after `at`."""
    return index + _NUMBER.pack(micros(at) + 1)


def time_of(key: bytes) -> datetime:
    """Return the time in a key of `line_place` or `place`."""
    return moment(int.from_bytes(key[-_ID - 16 : -_ID - 8], "big"))


def seq_of(turn: bytes) -> int:
    """Return the sequence number that a key of `turn_of` begins with."""
    return int.from_bytes(turn[:8], "big")


def death_of(key: bytes) -> Death:
    """Return the position of the dead job that a key of an index leads to."""
    return Death(int.from_bytes(key[-_ID - 16 : -_ID - 8], "big") - _BIAS, seq_of(turn_of(key)))


def before_death(index: bytes, death: Death) -> bytes:
    """Return the end of the range of keys in `index` whose jobs are past a position in the list of dead jobs."""
    return index + _PLACE.pack(death.at + _BIAS, max(death.seq, 0))


def turn_of(key: bytes) -> bytes:
    """Return the end of a key of `line_place` or `place`, from the sequence number: it sorts as jobs were enqueued."""
    return key[-_ID - 8 :]


def queue_of(key: bytes) -> str:
    """Return the queue in a key of an index, or of a queue."""
    return names_of(key[1 : key.index(_END)])[0]


def kind_of(key: bytes) -> str | None:
    """Return the kind in a key of a pending job; None for a raw one."""
    kind = key[key.index(_END) + len(_END) : -_ID - 20]
    return None if kind == _RAW else names_of(kind[len(_KIND) :])[0]


def job_fields(key: bytes) -> dict[str, object]:
    """Return the fields of a job that a key of an index tells, by their names."""
    fields: dict[str, object] = {"seq": seq_of(turn_of(key)), "queue": queue_of(key)}
    match key[:1]:
        case b"l":
            return fields | {
                "state": State.PENDING,
                "kind": kind_of(key),
                "priority": priority_of(key),
                "run_at": time_of(key),
            }
        case b"d":
            return fields | {"state": State.SCHEDULED, "run_at": time_of(key)}
        case b"r":
            return fields | {"state": State.RUNNING, "lease_expires_at": time_of(key)}
        case _:
            return fields | {"state": end_of(key), "finished_at": time_of(key)}


def end_of(key: bytes) -> State:
    """Return the state in a key of a finished job."""
    letter = key[key.index(_END) + len(_END) :][:1]
    return next(state for state, written in _STATES.items() if written == letter)


def priority_of(key: bytes) -> int:
    """Return the priority in a key of `line_place`."""
    return int.from_bytes(key[-_ID - 20 : -_ID - 16], "big")


def first_of_priority(priority: int) -> bytes:
    """Return what the places of a priority and all behind it do not come before."""
    return priority.to_bytes(4, "big")


def queue_record(queue: str) -> bytes:
    """Where the counts of a queue are."""
    return QUEUES + name(queue)


def minute(at: datetime, queue: str = "", kind: str | None = None, *, family: bytes = MINUTES) -> bytes:
    """Where it is written what happened in a minute, or how long it took; without a queue where the minute begins."""
    begin = family + _NUMBER.pack(micros(at))
    return begin + name(queue) + name(kind or "") if queue else begin


def minute_of(key: bytes) -> tuple[datetime, str, str]:
    """Return minute, queue and kind of such a key; the kind of raw jobs is empty."""
    queue, kind = names_of(key[9:])
    return moment(int.from_bytes(key[1:9], "big")), queue, kind


def hold(hold_name: str) -> bytes:
    """Where it is written who holds a unique key."""
    return HOLDS + hold_name.encode()


def hold_time(at: datetime, hold_name: str = "") -> bytes:
    """Where it is written that time alone frees a unique key, at `at`."""
    return HOLD_TIMES + _NUMBER.pack(micros(at)) + hold_name.encode()


def value(key: bytes) -> bytes:
    """Where a value of the caller is."""
    return VALUES + key


def named(family: bytes, key: str) -> bytes:
    """Where a schedule, a server or a lock is."""
    return family + key.encode()


def name_of(key: bytes) -> str:
    """Return the name in a key of `named`."""
    return key[1:].decode()


def receipt(request_id: str) -> bytes:
    """Where the answer to a request is."""
    return RECEIPTS + request_id.encode()


def receipt_time(at: datetime, request_id: str = "") -> bytes:
    """Where it is written when a request was answered."""
    return RECEIPT_TIMES + _NUMBER.pack(micros(at)) + request_id.encode()


def text_behind_time(key: bytes) -> str:
    """Return the name in a key of `hold_time` or `receipt_time`."""
    return key[9:].decode()


def audit(entry: int) -> bytes:
    """Where an entry is of what people did."""
    return AUDIT + _NUMBER.pack(entry)


def parcel(move: str, queue: str) -> bytes:
    """Where it is written which parcel of a move and a queue came last."""
    return PARCELS + name(move) + name(queue)
