"""Dumps of torch.distributed's flight recorder, converted to timelines.

A dump becomes a timeline of its rank, with an event for each collective and one for each process
group, whose number of collectives it has.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from rule_core.profiler.files.constants import MODELTIMELINE_SUFFIX
from rule_core.profiler.files.conversion import Converted, NumberedKey, read_each
from rule_core.profiler.files.file_names import rank_in
from rule_core.profiler.files.whole_text import is_json_name, is_pickle, whole_text
from rule_core.profiler.flight_recorder.dump import Collective, FlightDump, elements, shortened
from rule_core.profiler.traces.timeline_files import ConvertedTimeline
from rule_core.storage.base import TrialStore

COLLECTIVES: Final = "collectives"
PROCESS_GROUPS: Final = "process_groups"
_DEFAULT_NAME: Final = re.compile(r"(?:nccl|comm_lib)_trace_rank_\d{1,6}(?:\.json(?:\.gz)?)?")
_RANK_NAME: Final = re.compile(r".*rank[-_.=]?\d{1,6}", re.IGNORECASE)
_LAST_NUMBER: Final = re.compile(r".*?(\d{1,6})(?:\.json(?:\.gz)?)?")
_MARKS: Final = re.compile(rb'"(pg_config|pg_status|collective_seq_id|comm_lib_version)"\s*:')
_EARLIEST_US: Final = 10**15  # 2001
_LATEST_US: Final = 10**16
CONVERSION: Final = (
    "python -c \"import json, pickle, sys; [json.dump(pickle.load(open(f, 'rb')), "
    "open(f + '.json', 'w')) for f in sys.argv[1:]]\" FILES"
)
_PICKLE: Final = (
    "It is a pickle, which could run any code when loaded: convert the dumps where they were "
    f"written, with {CONVERSION}, and read the JSON files."
)
_OTHER_PICKLE: Final = "It is a pickle, not JSON: pickles are never loaded."
_NO_RANK: Final = "Its name does not end with a rank, as nccl_trace_rank_0.json does: rename it."
_OLD: Final = (
    "It has version {version!r} of the format: dumps of PyTorch 2.4 and later, with version 2, "
    "are read."
)


def is_dump_name(key: str) -> bool:
    """Return whether a file has PyTorch's name for dumps, which may be pickles."""
    return _DEFAULT_NAME.fullmatch(key.rpartition("/")[2]) is not None


def may_be_dump_name(key: str) -> bool:
    """Return whether a dump may have such a name."""
    return is_json_name(key) or _RANK_NAME.fullmatch(key.rpartition("/")[2]) is not None


def begins_as_dump(text: bytes) -> bool:
    """Return whether a text begins as a dump in JSON does."""
    return text.startswith(b"{") and _MARKS.search(text) is not None


def pickle_refusal(key: str, start: bytes) -> str:
    """Return why a pickle is not read; "" for other files."""
    if not is_pickle(start):
        return ""
    if is_dump_name(key) or b"pg_config" in start or b"collective_seq_id" in start:
        return _PICKLE
    return _OTHER_PICKLE if is_json_name(key) else ""


def convert_dumps(
    store: TrialStore, keys: Sequence[NumberedKey], folder: Path
) -> Iterator[Converted]:
    """Convert dumps one by one; of each rank, only the first."""
    ranks: dict[int, str] = {}

    def convert(numbered: NumberedKey) -> Converted:
        key = numbered.key
        rank = dump_rank(key)
        if rank is None:
            return Converted(key, {}, [_NO_RANK], 1)
        if (first := ranks.setdefault(rank, key)) != key:
            problem = f"Rank {rank} has another dump, {first!r}: this one is left out."
            return Converted(key, {}, [problem], 1)
        return _convert(store, numbered, rank, folder)

    return read_each(keys, convert)


def dump_rank(key: str) -> int | None:
    """Return the rank at the end of a dump's name; None if there is none.

    >>> dump_rank("run_2/nccl_trace_rank_7.json"), dump_rank("fr12"), dump_rank("dump.json")
    (7, 12, None)
    """
    name = key.rpartition("/")[2]
    rank = rank_in(name)
    match = _LAST_NUMBER.fullmatch(name)
    return rank if rank is not None or match is None else int(match[1])


def _convert(store: TrialStore, numbered: NumberedKey, rank: int, folder: Path) -> Converted:
    number, key = numbered
    dump = FlightDump(key, whole_text(store, key))
    if not dump.is_read:
        return Converted(key, {}, [_OLD.format(version=dump.version)], 1)
    entries = [entry for entry in dump.collectives if _EARLIEST_US <= _start(entry) < _LATEST_US]
    reasons = [*dump.skipped, *["its time is implausible"] * (len(dump.collectives) - len(entries))]
    problems = []
    if reasons:
        skipped = f"It has {len(reasons)} entries that are skipped, the first because {reasons[0]}."
        problems.append(skipped)
    now_us = store.status(key).modified * 1e6
    zero = int(min(map(_start, entries), default=now_us))
    last = max((_end(entry) for entry in entries), default=now_us) - zero
    path = folder / f"{number}.collectives"
    with closing(ConvertedTimeline(path)) as timeline:
        for entry in entries:
            start = _start(entry) - zero
            end = last if entry.is_pending else max(_end(entry) - zero, start)
            args = _args(entry, dump.ranks)
            timeline.add(COLLECTIVES, entry.profiling_name, start, end - start, 0, args)
        for group, joined in dump.last_joined().items():
            args = {"group": group, "ranks": dump.ranks.get(group, ""), "joined": joined}
            timeline.add(PROCESS_GROUPS, f"process group {group}", last, 0, 0, args)
        if not timeline.count:
            timeline.add(PROCESS_GROUPS, "no process group", last, 0, 0, {})
        timeline.finish(zero)
    prefix = f"framework/pevents/{number:06}/{zero + int(last) + 1}_rank-{rank}_"
    return Converted(key, {prefix + MODELTIMELINE_SUFFIX: path}, problems, len(reasons), zero)


def _start(entry: Collective) -> float:
    return entry.time_created_ns / 1000


def _end(entry: Collective) -> float:
    return max(entry.time_discovered_completed_ns or 0, entry.time_created_ns) / 1000


def _args(entry: Collective, ranks: dict[str, str]) -> dict[str, Any]:
    group, description = entry.process_group
    args = {
        "group": group,
        "group_desc": description,
        "ranks": ranks.get(group, ""),
        "seq": entry.p2p_seq_id if entry.is_p2p else entry.collective_seq_id,
        "state": entry.state,
        "input_sizes": shortened(str(entry.input_sizes)),
        "output_sizes": shortened(str(entry.output_sizes)),
        "input_dtypes": shortened(", ".join(entry.input_dtypes)),
        "output_dtypes": shortened(", ".join(entry.output_dtypes)),
        "input_elements": elements(entry.input_sizes),
        "output_elements": elements(entry.output_sizes),
        "is_pending": entry.is_pending,
    }
    extra = {"is_p2p": True} if entry.is_p2p else {}
    return {**args, **extra, **({"location": entry.location} if entry.location else {})}
