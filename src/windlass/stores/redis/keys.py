r"""The names of all keys of a store.

Every key begins with the prefix in braces, `{windlass}|`, so that a Cluster keeps them all on one shard and scripts may
touch them together; with `?spread=queues` those of a queue begin with `{windlass|queue}|`. "|" is in no name of a user.

    meta                       hash: the version of this layout
    seq                        the number of the last enqueue
    queues, paused             sets of names; that of a queue stays when its last job has gone, as its totals do
    settings|QUEUE             hash: declared and override, the settings of a queue as JSON objects, and revision, the
                               number of their changes; whether they pause the queue is in `paused`: claims read that,
                               and earlier releases know nothing else
    queue_numbers              hash: a number for each queue, where they are spread
    job|ID                     hash: head (what never changes), body (codec and payload), claim (token, attempt,
                               delivery, claimed_at, worker: of the last one, also when it has ended, so that a second
                               settlement is known); where they are missing, state is pending and run_at that of the
                               enqueue; finished_at, error, result, result_codec, progress, cancel, logged (whether it
                               has a log, or a delivery 0), details (of deliveries: the module of the failure, when an
                               operator retried the job after it), hold (the unique key that it asked for), key (while
                               it has it), has_followers (while other jobs follow it: a plain success of it is written
                               as any other end) and more (what few jobs have)
    history|ID, log|ID         lists: how deliveries ended, but for a success; log lines. They go with the job
    jobs|QUEUE                 sorted set: all jobs of a queue by the number of their enqueue
    ready|QUEUE|KIND           sorted set of one score: pending jobs by priority, time and number, which each member
                               begins with
    kinds|QUEUE                set: the kinds that have such a line
    due|QUEUE                  sorted set: scheduled jobs by their time
    leased|QUEUE               sorted set: running jobs by the end of their lease, which is kept here alone
    ended|QUEUE|STATE          sorted set: finished jobs by the time of their end
    dead|QUEUE                 sorted set: dead jobs by the number of their enqueue
    totals|QUEUE               hash: what ever happened
    minute|TIME                hash: what happened in a minute, by queue, kind and what; goes after eight days
    timing|TIME                hash: how many attempts took how long in a minute, by queue, kind, what and range;
                               goes after eight days
    hold|NAME                  who holds a unique key; goes with the job, or when its time is over
    timed                      sorted set: the names of keys that time alone frees, by that time; goes with the last
    receipt|REQUEST            what was answered to a request, whose name begins with the kind of call where its caller
                               has named it; goes a minute after the deadline of the call, or after
                               ten minutes where the caller has named it
    lock|NAME                  who has a lock; goes when its time is over
    kv, kv_keys                hash and sorted set: the caller's own values, and their keys in order
    schedule|ID                hash: a schedule
    schedules, schedules_due   set: their ids; sorted set: those that are not paused, by their next run
    schedules_at               hash: with which queue each is kept, where queues are spread
    revision                   the last revision that a schedule was given
    servers, servers_started   hashes: what servers last told, when they were first seen
    servers_seen               sorted set: servers by when they were last seen
    audit                      list: what people did, the newest 10,000
    moved                      where the jobs go, while nothing new may begin here; where queues are spread, with each
    unpacked, unpacked_at      hash and sorted set: the last parcel that came here, for each move and queue, and when;
                               they go after ninety days

Rescue, promotion and pruning walk the names of all queues that ever had a job: totals never fall, so names stay. A set
of those that have something to do would be written by each claim, and by those of an older release it would not be:
what they hold would never be rescued. The walk is short until there are thousands of names.

What changed is told on the channel `windlass|news`, as the topics of `core.topics` parted by blanks.
"""

from typing import Final

LAYOUT: Final = 1
"""The version of this layout.

A worker compares it when it opens the store, and never again: one that runs would not notice a new version. So what was
added since the first layout is nothing that an earlier release has to read: `settings|QUEUE` is beside `paused`, and
no job has `has_followers` yet.
"""


def prefix_of(name: str) -> str:
    """Return what the keys of the store `name` begin with."""
    return f"{{{name}}}|"


def prefix_of_queue(name: str, queue: str) -> str:
    """Return what the keys of one queue begin with, where each queue is for itself."""
    return f"{{{name}|{queue}}}|"


def channel_of(name: str) -> str:
    """Return the channel on which the store `name` tells what changed."""
    return f"{name}|news"
