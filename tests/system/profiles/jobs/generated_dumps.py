"""Generated dumps of the flight recorder, of two ranks to 64."""

from collections.abc import Callable, Iterator
from pathlib import Path

from flight_recorder_writer import Dump, training, write_all
from profile_jobs import GENERATED, faulty, healthy

RULE = "CollectiveNotJoined"
PAIRS = {"1": [0, 1], "2": [2, 3]}
Dumps = Iterator[Dump]


def _sharded() -> Dumps:
    """Yield the dumps of four ranks that gather shards in pairs, one pair more often."""
    for rank in range(4):
        dump = Dump(rank, 4, PAIRS)
        for _ in range(5):
            dump.join("all_gather", group="1" if rank in PAIRS["1"] else "2")
            dump.join("reduce_scatter")
        if rank in PAIRS["1"]:
            dump.join("all_gather", group="1")
        yield dump


def _evenly(ranks: int) -> Callable[[], Dumps]:
    return lambda: iter(training(ranks, collectives=20))


def _at_work() -> Dumps:
    """Yield dumps of ranks that were inside of a collective, and had different ones in memory."""
    for dump in training(4, collectives=12):
        dump.join(completes=False)
        del dump.entries[: 2 * dump.rank]
        yield dump


def _uneven_shares() -> Dumps:
    for dump in training(3):
        dump.join("all_to_all", [[100 + dump.rank]])
        dump.join("broadcast")
        yield dump


def _late(ranks: int, late: int, missed: int) -> Callable[[], Dumps]:
    def dumps() -> Dumps:
        for dump in training(ranks):
            for _ in range(0 if dump.rank == late else missed):
                dump.join(completes=False)
            yield dump

    return dumps


def _in_one_branch() -> Dumps:
    """Yield the dumps of ranks of which one validates while the others train."""
    for dump in training(4):
        dump.join("broadcast" if dump.rank == 1 else "all_reduce", completes=False)
        yield dump


def _last_batch() -> Dumps:
    for dump in training(2):
        dump.join(sizes=[[32 if dump.rank else 64, 8]], completes=False)
        yield dump


def _mixed_precision() -> Dumps:
    for dump in training(3):
        dump.join(dtype="BFloat16" if dump.rank == 2 else "Float", completes=False)
        yield dump


def _killed() -> Dumps:
    return (dump for dump in training(4) if dump.rank != 3)


def _late_in_a_group() -> Dumps:
    for dump in _sharded():
        if dump.rank == 2:
            dump.join("all_gather", group="2", completes=False)
        yield dump


def _make(dumps: Callable[[], Dumps]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        write_all(folder, [*dumps()])

    return make


for name, text, dumps in (
    ("dumps_of_two_ranks", "Dumps of two ranks that joined the same collectives.", _evenly(2)),
    ("dumps_of_64_ranks", "Dumps of 64 ranks that joined the same collectives.", _evenly(64)),
    ("dumps_at_work", "Dumps of four ranks in the middle of an all_reduce of all.", _at_work),
    ("dumps_of_shards", "Ranks in two groups, of which one gathers more often.", _sharded),
    ("dumps_of_experts", "An all_to_all with another share for each rank.", _uneven_shares),
):
    healthy(_make(dumps), name, text, GENERATED)

for name, text, dumps in (
    ("rank_not_in_all_reduce", "One of four ranks does not join an all_reduce.", _late(4, 2, 1)),
    ("rank_out_of_data", "One of two ranks ends its epoch three steps early.", _late(2, 1, 3)),
    ("rank_in_other_branch", "One rank is in a broadcast, the others reduce.", _in_one_branch),
    ("rank_with_short_batch", "Two ranks reduce different numbers of elements.", _last_batch),
    ("rank_of_other_precision", "One rank reduces bfloat16, the others floats.", _mixed_precision),
    ("rank_without_dump", "One of four ranks was killed, and left no dump.", _killed),
    ("rank_not_in_group", "One of two ranks of a group does not gather.", _late_in_a_group),
):
    faulty(_make(dumps), name, text, GENERATED, [RULE])
