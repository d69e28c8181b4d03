"""Who takes part in the benchmarks: rule-runner, smdebug 1.0.34, and the floor."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from bench_rounds import HERE, Contender

# Pythons that have smdebug 1.0.34: as it installs itself, and with today's protobuf.
OLD, MODERN = "RULE_RUNNER_OLD_SMDEBUG_PYTHON", "RULE_RUNNER_MODERN_SMDEBUG_PYTHON"
ONE, TWO, CUSTOM = "one thread", "two cores", "documented names"
OLDER, NEWER = "smdebug", "smdebug, compiled protobuf"
FLOOR, PREAD, READ, NUMPY = "floor", "floor by pread", "reading alone", "arithmetic alone"
READ_BY_TWO = "reading alone by two threads"
HELP, PYTHON, IMPORTS = "rule-runner --help", "python -c pass", "imports of --help"
EVALUATE, IMPORT_NUMPY, IMPORT_CLICK = "evaluate, tiny trial", "import numpy", "import click"
LIVE, LIVE_TWELVE = "one rule job, live", "twelve rule jobs, live"
TOGETHER = "twelve rules together"
TWELVE = (
    "VanishingGradient",
    "ExplodingTensor",
    "AllZero",
    "TensorVariance",
    "UnchangedTensor",
    "WeightUpdateRatio",
    "DeadRelu",
    "SaturatedActivation",
    "PoorWeightInitialization",
    "LossNotDecreasing",
    "Overfit",
    "Overtraining",
)


def ours(name: str, trial: str, rules: Sequence[str], cores: int = 1) -> Contender:
    """Return an evaluation of built-in rules."""
    command = [sys.executable, str(HERE / "bench_ours.py"), trial, ",".join(rules)]
    return Contender(name, command, cores)


def documented(name: str, what: str, trial: str, rules: Sequence[str] = ()) -> list[Contender]:
    """Return a use of documented names by our library or the older one, if that is there."""
    script = [str(HERE / "bench_custom.py"), what, trial, ",".join(rules)]
    if name == CUSTOM:
        return [Contender(name, [sys.executable, *script])]
    python = os.environ.get(OLD if name == OLDER else MODERN)
    if not python:
        return []
    launcher = [] if name == OLDER else [str(HERE / "bench_protobuf.py")]
    return [Contender(name, [python, "-E", *launcher, *script])]  # -E: none of our paths


def plain(name: str, trial: str, way: str, cores: int = 1) -> Contender:
    """Return the plain script."""
    return Contender(name, [sys.executable, str(HERE / "bench_floor.py"), trial, way], cores)


def one_rule(trial: str) -> list[Contender]:
    """Return all who judge the mean magnitude of gradients.

    Neighbours are those that are compared.
    """
    rule = TWELVE[:1]
    return [
        *documented(OLDER, "custom", trial),
        ours(ONE, trial, rule),
        plain(FLOOR, trial, "mmap"),
        *documented(CUSTOM, "custom", trial),
        ours(TWO, trial, rule, 2),
        plain(READ_BY_TWO, trial, "threads", 2),
        *documented(NEWER, "custom", trial),
    ]


def floors(trial: str) -> list[Contender]:
    """Return the ways of the plain script."""
    ways = {FLOOR: "mmap", PREAD: "pread", READ: "read", NUMPY: "numpy"}
    return [plain(name, trial, way) for name, way in ways.items()]


def saved_reductions(trial: str) -> list[Contender]:
    """Return those who judge reductions, of which there is no plain script."""
    return [one for one in one_rule(trial) if one.name not in {FLOOR, READ_BY_TWO}]


def all_workers(trial: str) -> list[Contender]:
    """Return those who judge every worker."""
    return [
        *documented(OLDER, "workers", trial),
        ours(ONE, trial, TWELVE[:1]),
        *documented(CUSTOM, "workers", trial),
    ]


def losses(trial: str) -> list[Contender]:
    """Return those who read losses."""
    rule = ["LossNotDecreasing"]
    return [
        *documented(OLDER, "fetch", trial, rule),
        ours(ONE, trial, rule),
        *documented(CUSTOM, "fetch", trial, rule),
    ]


def twelve(trial: str) -> list[Contender]:
    """Return twelve rules together and alone, and what they read, read by the older library."""
    return [
        *documented(OLDER, "fetch", trial, TWELVE),
        ours(TOGETHER, trial, TWELVE),
        *(ours(rule, trial, [rule]) for rule in TWELVE),
        *documented(NEWER, "fetch", trial, TWELVE),
    ]


def opening(trial: str) -> list[Contender]:
    """Return those who open a trial."""
    return [*documented(OLDER, "open", trial), *documented(CUSTOM, "open", trial)]


def opening_alone(trial: str) -> list[Contender]:
    """Return who opens a trial that takes smdebug too long."""
    return [*documented(CUSTOM, "open", trial)]


def running(_: str) -> list[Contender]:
    """Return evaluations of a trial that is being written."""
    command = [sys.executable, str(HERE / "bench_live.py")]
    return [Contender(LIVE, [*command, "1"], 0), Contender(LIVE_TWELVE, [*command, "12"], 0)]


def one_watched(trial: str) -> list[Contender]:
    """Return one rule whose memory is looked at."""
    return [replace(ours(ONE, trial, TWELVE[:1], 2), watched=True)]


def both_watched(trial: str) -> list[Contender]:
    """Return one rule of either library whose memory is looked at."""
    older = [replace(one, watched=True) for one in documented(OLDER, "custom", trial)]
    return [*one_watched(trial), *older]


def twelve_watched(trial: str) -> list[Contender]:
    """Return twelve rules whose memory is looked at."""
    return [replace(ours(TOGETHER, trial, TWELVE, 2), watched=True)]


def starts(trial: str) -> list[Contender]:
    """Return commands that are timed from outside, what they are compared with, and imports."""
    program = [sys.executable, "-m", "rule_runner"]
    evaluate = [*program, "evaluate", "--trial", trial, "--rule", TWELVE[0], "--no-wait"]
    output = ["--output", f"{trial}-output", "--overwrite"]
    return [
        Contender(IMPORT_CLICK, [sys.executable, "-c", "import click"], outside=True),
        Contender(HELP, [*program, "--help"], outside=True),
        Contender(PYTHON, [sys.executable, "-c", "pass"], outside=True),
        Contender(IMPORT_NUMPY, [sys.executable, "-c", "import numpy"], outside=True),
        Contender(EVALUATE, [*evaluate, *output], outside=True),
        Contender(IMPORTS, [sys.executable, str(HERE / "bench_start.py")]),
    ]
