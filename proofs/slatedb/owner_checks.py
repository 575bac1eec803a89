"""What owners were told, against what is in their store in the end."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from proofs.fleet.fleet import check_tokens
from proofs.ledger import Entry
from proofs.readers.slatedb import NO_JOBS
from proofs.readers.sqlite import FleetReader, Row
from proofs.report import Report
from proofs.serving import Place, check_ends, check_store, ended
from proofs.slatedb.owner_tasks import FENCED, FOR_THE_DEAD, RAW, payload


def check_all(report: Report, place: Place, entries: list[Entry], *, kills: int) -> None:
    """Every job that was acknowledged is there, every settlement holds, and the store is whole."""
    reader = place.fleet_reader
    rows = reader.jobs()
    _check_enqueues(report, rows, entries)
    _check_settlements(report, reader, rows, entries)
    _check_attempts(report, reader, rows, entries)
    check_ends(report, place, _expected(rows, entries), ended(entries))
    check_tokens(report, reader, entries)
    check_store(report, place, entries, kills=kills)
    report.never("tracebacks in the log", _tracebacks(log_of(place)))


def check_deleted(report: Report, place: Place, entries: list[Entry], *, kills: int) -> None:
    """The same where a settlement deletes its job: what is gone was done, and by one; the counts of all time tell."""
    reader = place.fleet_reader
    calls = {entry.job: _ids(entry) for entry in entries if entry.event == "invoked"}
    acknowledged = {job for entry in entries if entry.event == "ok" for job in _ids(entry)}
    tried = {job for jobs in calls.values() for job in jobs}
    worked = {entry.job for entry in entries if entry.event == "ended"}
    settled = Counter(entry.job for entry in entries if entry.event == "settled" and entry.note != FOR_THE_DEAD)
    enqueued, succeeded = reader.totals()
    report.figure("jobs whose enqueue was acknowledged", len(acknowledged))
    report.never("lost: acknowledged, gone, and its work was not done", acknowledged - worked)
    report.never("records left of jobs that have succeeded", reader.jobs().values())
    report.figure("jobs counted as enqueued", enqueued)
    report.never("enqueued fewer than acknowledged, or more than tried", _outside(enqueued, acknowledged, tried))
    report.never(
        "settled twice, or never: successes counted but not one for each job", range(abs(enqueued - succeeded))
    )
    report.figure("settlements acknowledged", settled.total())
    report.never("jobs settled twice", [job for job, count in settled.items() if count > 1])
    first = {entry.job: entry.at for entry in reversed(entries) if entry.event == "settled"}
    report.never(
        "begun again after a settlement that was acknowledged",
        [entry for entry in entries if entry.event == "begun" and entry.at > first.get(entry.job, entry.at)],
    )
    begun = Counter(entry.token for entry in entries if entry.event == "begun")
    report.never("tokens handed out twice", [token for token, count in begun.items() if count > 1])
    haunted = [entry for entry in entries if entry.note == FOR_THE_DEAD]
    report.figure("settlements tried by tokens of the dead", len(haunted))
    report.never("stale settlements accepted", [entry for entry in haunted if entry.event == "settled"])
    report.never("queues whose counts are off", reader.counts_off())
    report.never("keys that belong to no job", [said for said in reader.integrity() if said != NO_JOBS])
    report.never("lines of the ledger torn by anything but a kill", [e for e in entries if e.event == "torn"][kills:])
    report.never("tracebacks in the log", _tracebacks(log_of(place)))


def _outside(enqueued: int, least: Collection[str], most: Collection[str]) -> list[int]:
    return [] if len(least) <= enqueued <= len(most) else [enqueued]


def log_of(place: Place) -> list[str]:
    """Return what the owners have logged: errors alone."""
    log = place.ledger.with_name("log")
    return log.read_text().splitlines() if log.exists() else []


def _check_enqueues(report: Report, rows: Mapping[str, Row], entries: list[Entry]) -> None:
    calls = {entry.job: entry for entry in entries if entry.event == "invoked"}
    acknowledged = {entry.job for entry in entries if entry.event == "ok"}
    unknown = calls.keys() - acknowledged
    there = {first: sum(job in rows for job in _ids(call)) / len(_ids(call)) for first, call in calls.items()}
    report.figure("jobs whose enqueue was acknowledged", sum(len(_ids(calls[first])) for first in acknowledged))
    report.never("lost: acknowledged and not there", [first for first in acknowledged if there[first] < 1])
    doubts = [entry for entry in entries if entry.event == "fault" and not entry.note.startswith(FENCED)]
    report.figure("calls repeated, since the store was away or their outcome unknown", len(doubts))
    report.figure("enqueues cut short: recovered", sum(there[first] == 1 for first in unknown))
    report.figure("enqueues cut short: absent", sum(there[first] == 0 for first in unknown))
    report.never("batches there in part", [first for first, share in there.items() if 0 < share < 1])
    report.never(
        "payloads that differ", [row.id for row in rows.values() if row.queue == RAW and row.payload != payload(row.id)]
    )


def _check_settlements(report: Report, reader: FleetReader, rows: Mapping[str, Row], entries: list[Entry]) -> None:
    """Each job was settled by exactly one, who was told so, and nobody began it afterwards."""
    tokens = reader.tokens()
    settled = [entry for entry in entries if entry.event == "settled" and entry.note != FOR_THE_DEAD]
    haunted = [entry for entry in entries if entry.note == FOR_THE_DEAD]
    refused = [entry for entry in entries if entry.event == "refused" and entry.note != FOR_THE_DEAD]
    report.figure("settlements acknowledged", len(settled))
    report.figure("settlements refused, of claims that were lost", len(refused))
    report.never("jobs settled twice", _more_than_one(entry.job for entry in settled))
    report.never(
        "settlements acknowledged that did not hold",
        [entry for entry in settled if not _holds(entry, rows.get(entry.job), tokens.get(entry.job))],
    )
    first = {entry.job: entry.at for entry in reversed(settled)}
    report.never(
        "begun again after a settlement that was acknowledged",
        [entry for entry in entries if entry.event == "begun" and entry.at > first.get(entry.job, entry.at)],
    )
    report.figure("settlements tried by tokens of the dead", len(haunted))
    report.never("stale settlements accepted", [entry for entry in haunted if entry.event == "settled"])


def _holds(entry: Entry, row: Row | None, token: str | None) -> bool:
    """Whether what was acknowledged is what is kept; a server is not told the token of what it settles."""
    if row is None or row.state != "succeeded" or row.delivery != entry.delivery:
        return False
    return not entry.token or entry.token == token


def _check_attempts(report: Report, reader: FleetReader, rows: Mapping[str, Row], entries: list[Entry]) -> None:
    """A job is charged once for each time that it was taken back, and for its success."""
    deliveries = reader.deliveries()
    rescues = Counter(each.job for each in deliveries if each.outcome == "rescued")
    begun = Counter(entry.job for entry in entries if entry.event == "begun")
    report.figure("attempts begun", begun.total())
    report.figure("jobs begun more than once", sum(count > 1 for count in begun.values()))
    report.figure("claims taken back", rescues.total())
    report.never(
        "deliveries that ended otherwise than by a rescue or a release",
        [each for each in deliveries if each.outcome not in ("rescued", "released")],
    )
    report.never(
        "jobs charged otherwise than once for each rescue and for the success",
        [row for row in rows.values() if row.attempt != rescues[row.id] + 1],
    )


def _expected(rows: Mapping[str, Row], entries: Iterable[Entry]) -> Sequence[str]:
    """Return the jobs that must be there, and of those whose enqueue was cut short those that are."""
    expected: dict[str, None] = {}
    for entry in entries:
        if entry.event == "ok":
            expected |= dict.fromkeys(_ids(entry))
        elif entry.event == "invoked":
            expected |= dict.fromkeys(job for job in _ids(entry) if job in rows)
    return [*expected]


def _tracebacks(log: Sequence[str]) -> list[str]:
    """Return how each of them ends; behind the line of its log it may stand further in."""
    begun = [at for at, line in enumerate(log) if line.lstrip().startswith("Traceback")]
    return [next((line for line in log[at + 1 :] if not line.startswith(" ")), "") for at in begun]


def _ids(call: Entry) -> list[str]:
    return call.note.split()


def _more_than_one(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
