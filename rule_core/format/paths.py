"""The keys of a trial's files, relative to its root, and the names in them."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

COLLECTIONS: Final = "collections/000000000/"
INDEX: Final = "index/"
EVENTS: Final = "events/"
EVENT_KEY: Final = EVENTS + "{0:012d}/{0:012d}_{1}.tfevents"  # of a step and a worker's file name
END_OF_JOB: Final = "training_job_end.ts"
# Not in smdebug: an empty file for each worker that has finished, until the last one has.
CLOSED: Final = "closed/"
STEPS_PER_SHARD: Final = 1000
REDUCTION_PREFIX: Final = "smdebug/reductions/"
# Twelve digits still sort as text; longer step numbers do not.
SORTABLE_STEPS: Final = 10**12
MAX_STEP: Final = 2**63 - 1
WORKERS_KEPT: Final = 1 << 16  # names whose parts are remembered

# Names that are not UTF-8 contain surrogates, which no output accepts.
_WORKER = r"([^\ud800-\udfff]+)"
_INDEX_NAME = re.compile(rf"(\d{{1,19}})_{_WORKER}\.(?:json|csv)")
_COLLECTIONS_NAME = re.compile(rf"{_WORKER}_collections\.(?:json|ts)")


# What a part adds to its worker: a mode, and for sources the numbers of source and file.
_PART = re.compile(r"(.+)@(?:\d+\.)?(?:s\d+\.)?(?:TRAIN|EVAL|PREDICT|GLOBAL)(?:\.\d+)?", re.DOTALL)


class StepFile(NamedTuple):
    """The global step and worker in the name of an index file."""

    step: int
    worker: str


def worker_from_file_name(text: str) -> str:
    """Return the worker's name; file names replace ``/`` and ``:`` in TensorFlow's device names.

    >>> worker_from_file_name("_job-worker_replica-0_task-0_device-GPU-1")
    '/job:worker/replica:0/task:0/device:GPU:1'
    """
    return text.replace("_", "/").replace("-", ":") if text.startswith("_") else text


@lru_cache(WORKERS_KEPT)
def worker_to_file_name(worker: str) -> str:
    """Return the form of a worker's name in file names."""
    return worker.replace("/", "_").replace(":", "-")


@lru_cache(WORKERS_KEPT)
def worker_of(part: str) -> str:
    """Return the worker of a part: a worker writes a part for each mode of a step.

    The part of a worker's first mode is the worker's name.

    >>> worker_of("worker_0"), worker_of("worker_0@EVAL"), worker_of("worker_0@1.TRAIN.3")
    ('worker_0', 'worker_0', 'worker_0')
    >>> worker_of("me@laptop"), worker_of("worker_0@s1.EVAL")
    ('me@laptop', 'worker_0')
    """
    match = _PART.fullmatch(part)
    return part if match is None else match[1]


def has_several_modes(parts: Iterable[str]) -> bool:
    """Return whether some parts are named after modes, so that a worker may have several.

    >>> has_several_modes(["worker_0", "me@laptop"]), has_several_modes(["worker_0@EVAL"])
    (False, True)
    """
    return "@" in "".join(parts) and any(worker_of(part) != part for part in parts)


def part_of(worker: str, mode: str) -> str:
    """Return the part for a further mode of a worker at a step.

    >>> part_of("worker_0", "EVAL")
    'worker_0@EVAL'
    """
    return f"{worker}@{mode}"


def parse_index_key(key: str) -> StepFile | None:
    """Parse step and worker from the key of an index file; return None for other keys.

    >>> parse_index_key("index/000000000/000000000003_worker_0.json")
    StepFile(step=3, worker='worker_0')
    """
    name = key.rpartition("/")[2]
    digits, worker = name[:12], _worker_after_step(name[12:])
    if worker is not None and digits.isdecimal():  # the standard form
        return StepFile(int(digits), worker)
    match = _INDEX_NAME.fullmatch(name)
    if match is None or (step := int(match[1])) > MAX_STEP:
        return None
    return StepFile(step, worker_from_file_name(match[2]))


@lru_cache(WORKERS_KEPT)
def _worker_after_step(tail: str) -> str | None:
    """Parse the worker from the part after the step of an index file's name, or return None."""
    match = _INDEX_NAME.fullmatch(f"0{tail}")
    return worker_from_file_name(match[2]) if match and tail.startswith("_") else None


def parse_collections_key(key: str) -> str | None:
    """Parse the worker from the key of a collections file; return None for other keys."""
    match = _COLLECTIONS_NAME.fullmatch(key.rpartition("/")[2])
    return None if match is None else worker_from_file_name(match[1])


def index_key(step: int, worker: str) -> str:
    """Return the key of the index file of a global step.

    >>> index_key(1234567, "worker_0")
    'index/000001234/000001234567_worker_0.json'
    """
    return f"{index_shard(step)}{step:012d}_{worker_to_file_name(worker)}.json"


def index_shard(step: int) -> str:
    """Return the folder, with a final slash, of the index file of a global step."""
    return f"{INDEX}{step // STEPS_PER_SHARD:09d}/"


def event_key(step: int, worker: str) -> str:
    """Return the key of the event file of a global step.

    >>> event_key(3, "worker_0")
    'events/000000000003/000000000003_worker_0.tfevents'
    """
    return EVENT_KEY.format(step, worker_to_file_name(worker))


def step_keys(step: int, worker: str) -> tuple[str, str]:
    """Return `index_key` and `event_key` together, which is faster.

    >>> step_keys(3, "worker_0") == (index_key(3, "worker_0"), event_key(3, "worker_0"))
    True
    """
    digits = f"{step:012d}"
    name = f"{digits}_{worker_to_file_name(worker)}"
    return f"index/{digits[:-3]}/{name}.json", f"events/{digits}/{name}.tfevents"


def collections_key(worker: str) -> str:
    """Return the key of a worker's collections file."""
    return f"{COLLECTIONS}{worker_to_file_name(worker)}_collections.json"


def closed_key(worker: str) -> str:
    """Return the key of the end mark of a worker."""
    return f"{CLOSED}{worker_to_file_name(worker)}"


def is_inside(key: str) -> bool:
    """Return whether a key from a file is below the trial's root.

    >>> is_inside("events/000000000003/x.tfevents"), is_inside("/etc/passwd"), is_inside("a/../b")
    (True, False, False)
    """
    parts = key.split("/")
    return "\0" not in key and "\\" not in key and not {"", ".", ".."} & set(parts)


class ReductionName(NamedTuple):
    """The parts of a reduction's record name; `absolute` means of the magnitudes."""

    tensor: str
    operation: str
    absolute: bool


def parse_reduction_name(name: str) -> ReductionName | None:
    """Parse the name of a record; return None if it is not a reduction.

    >>> parse_reduction_name("smdebug/reductions/abs_l2/conv/w")
    ReductionName(tensor='conv/w', operation='l2', absolute=True)
    """
    if not name.startswith(REDUCTION_PREFIX):
        return None
    operation, slash, tensor = name.removeprefix(REDUCTION_PREFIX).partition("/")
    if not slash:
        return None
    return ReductionName(tensor, operation.removeprefix("abs_"), operation.startswith("abs_"))


@lru_cache(maxsize=1 << 14)
def reduction_record_name(name: str, operation: str, absolute: bool) -> str:
    """Return the name of the record that stores a reduction of tensor `name`."""
    return f"{REDUCTION_PREFIX}{'abs_' if absolute else ''}{operation}/{name}"
