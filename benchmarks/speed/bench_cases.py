"""The benchmarks: over which trial, who takes part, how often, and what is compared with what."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import median

from bench_contenders import (
    CUSTOM,
    EVALUATE,
    FLOOR,
    HELP,
    IMPORT_CLICK,
    IMPORT_NUMPY,
    IMPORTS,
    LIVE,
    LIVE_TWELVE,
    NEWER,
    NUMPY,
    OLDER,
    ONE,
    PREAD,
    PYTHON,
    READ,
    READ_BY_TWO,
    TOGETHER,
    TWELVE,
    TWO,
    all_workers,
    both_watched,
    floors,
    losses,
    one_rule,
    one_watched,
    opening,
    opening_alone,
    running,
    saved_reductions,
    starts,
    twelve,
    twelve_watched,
)
from bench_rounds import HERE, Contender, Took
from bench_tables import Line, per_tensor

Times = Mapping[str, Sequence[Took]]
Clock = Callable[[Took], float]


@dataclass(frozen=True)
class Row:
    """A line of the table: how much longer `others` take, all of them in turn, than `ours`.

    Attributes
    ----------
    what, against
        What is compared, and with whom.
    target
        What is aimed at, in words; "" if nothing.
    share
        Give how much of their time `ours` takes instead.
    of
        What is compared, if it is not the time.
    """

    what: str
    ours: str
    others: Sequence[str]
    against: str
    target: str = ""
    share: bool = False
    of: Clock | None = None

    def line(self, times: Times, clock: Clock, values: int) -> Line | None:
        """Return the line; None if one of them did not take part."""
        if not {self.ours, *self.others} <= times.keys():
            return None
        clock = self.of or clock
        ours = [*map(clock, times[self.ours])]
        theirs = [*map(sum, zip(*(map(clock, times[one]) for one in self.others), strict=True))]
        pairs = zip(ours, theirs, strict=True)
        ratios = [one / other if self.share else other / one for one, other in pairs]
        took = () if self.of else (per_tensor(median(one), values) for one in (ours, theirs))
        return Line(self.what, self.against, ratios, self.target, "", *took)


@dataclass(frozen=True)
class Measure:
    """A line of the table with what a contender took, in a unit of its own."""

    what: str
    ours: str
    unit: str
    of: Clock
    target: str = ""

    def line(self, times: Times, clock: Clock, values: int) -> Line | None:
        """Return the line; None if it did not take part."""
        del clock, values
        found = [self.of(took) for took in times.get(self.ours, ())]
        return Line(self.what, "", found, self.target, self.unit) if found else None


@dataclass(frozen=True)
class Case:
    """A benchmark; `trial` is "" if it needs none."""

    trial: str
    pairs: int
    contenders: Callable[[str], list[Contender]]
    rows: Sequence[Row | Measure]


def beside(name: str, case: Case, checkout: Path) -> Case:
    """Return a case that compares this version of rule-runner with another checkout's."""
    measures = {row.ours: row.of for row in case.rows if isinstance(row, Measure)}
    rows = [
        Row(
            f"{name}: {ours.name}",
            ours.name,
            [other.name],
            str(checkout),
            "<= 1.05",
            share=True,
            of=measures.get(ours.name),
        )
        for ours, other in versions(case.contenders(""), checkout)
    ]
    return replace(
        case,
        contenders=lambda root: list(chain(*versions(case.contenders(root), checkout))),
        rows=rows,
    )


def versions(
    contenders: Sequence[Contender], checkout: Path
) -> Iterator[tuple[Contender, Contender]]:
    """Yield the contenders that run rule-runner, each with that of another checkout."""
    # Version 0.1.0 has the benchmarks in scripts/.
    folders = (checkout / "benchmarks" / "speed", checkout / "scripts")
    here, there = str(HERE), str(next(filter(Path.is_dir, folders)))
    for ours in contenders:
        if not ours.watched and ours.name in {
            ONE,
            TWO,
            CUSTOM,
            TOGETHER,
            LIVE,
            LIVE_TWELVE,
            EVALUATE,
            HELP,
            *TWELVE,
        }:
            command = [part.replace(here, there) for part in ours.command]
            name = f"{ours.name}, {checkout.name}"
            yield ours, replace(ours, name=name, command=command, checkout=checkout)


def one(name: str, single: str = "", double: str = "", custom: str = "") -> list[Row | Measure]:
    """Return the lines of one rule over a trial, with the targets of the first three."""
    return [
        Row(f"{name}: built-in rule, one thread", ONE, [OLDER], "smdebug", single),
        Row(f"{name}: built-in rule, two cores", TWO, [OLDER], "smdebug", double),
        Row(f"{name}: documented custom rule, one thread", CUSTOM, [OLDER], "smdebug", custom),
        Row(f"{name}: built-in rule, one thread", ONE, [NEWER], NEWER),
    ]


def of_floor(name: str, target: str = "") -> list[Row | Measure]:
    """Return the lines that compare with the floor: the share of it that is reached."""
    return [
        Row(f"{name}: built-in rule, one thread, share of the floor", ONE, [FLOOR], FLOOR, target),
        Row(f"{name}: built-in rule, two cores, share of the floor", TWO, [FLOOR], FLOOR),
        Row(f"{name}: built-in rule, two cores", TWO, [READ_BY_TWO], READ_BY_TWO, ">= 0.8"),
    ]


def made_of(name: str) -> list[Row | Measure]:
    """Return the lines that say what the floor is made of."""
    lines = {"floor by pread": PREAD, READ: READ, NUMPY: NUMPY}
    return [
        Row(f"{name}: {what}, part of the floor", contender, [FLOOR], FLOOR, share=True)
        for what, contender in lines.items()
    ]


def anonymous(took: Took) -> float:
    """Return memory in MB that is no page of a file."""
    return took.anonymous_mb


def cpu(took: Took) -> float:
    """Return the processor time in seconds, of any process."""
    return took.cpu_seconds


def heavy(took: Took) -> float:
    """Return how many heavy modules were imported."""
    return len(took.more["heavy"])


def step_ms(took: Took) -> float:
    """Return the median time in ms between a step and its verdict."""
    return float(took.more["step_ms"])


CASES = {
    "small": Case("small", 5, one_rule, [*one("small", ">= 40", "", ">= 12"), *of_floor("small")]),
    "medium": Case(
        "medium",
        7,
        one_rule,
        [*one("medium", ">= 5", ">= 8"), *of_floor("medium", ">= 0.85")],
    ),
    "large": Case(
        "large", 3, one_rule, [*one("large", ">= 7", ">= 12"), *of_floor("large", ">= 0.85")]
    ),
    "medium-floor": Case("medium", 5, floors, made_of("medium")),
    "large-floor": Case("large", 3, floors, made_of("large")),
    "scalars": Case(
        "scalars",
        1,
        losses,
        [
            Row("scalars: LossNotDecreasing", ONE, [OLDER], "smdebug reading the values"),
            Row("scalars: reading the values, documented names", CUSTOM, [OLDER], "smdebug"),
        ],
    ),
    "reductions": Case("reductions", 3, saved_reductions, one("saved reductions")),
    "workers": Case(
        "workers",
        3,
        all_workers,
        [
            Row("8 workers: built-in rule, one thread", ONE, [OLDER], "smdebug", ">= 16"),
            Row("8 workers: custom rule over all, one thread", CUSTOM, [OLDER], "smdebug"),
        ],
    ),
    "twelve": Case(
        "rules",
        3,
        twelve,
        [
            Row("twelve rules", TOGETHER, TWELVE, "the sum of their single runs", "<= 0.35", True),
            Row("twelve rules", TOGETHER, [OLDER], "smdebug reading the values", ">= 10"),
            Row("twelve rules", TOGETHER, [NEWER], f"{NEWER}, reading the values"),
        ],
    ),
    "opening": Case(
        "opening", 2, opening, [Row("opening 10,000 steps", CUSTOM, [OLDER], "smdebug", ">= 20")]
    ),
    "opening-all": Case(
        "opening-all",
        3,
        opening_alone,
        [Measure("opening 100,000 steps", CUSTOM, "s", lambda took: took.seconds)],
    ),
    "latency": Case(
        "",
        3,
        running,
        [
            Measure("verdict on a step of a running trial", LIVE, "ms", step_ms, "<= 5 ms"),
            Measure("the same with twelve rule jobs", LIVE_TWELVE, "ms", step_ms),
        ],
    ),
    "large-memory": Case(
        "large",
        1,
        both_watched,
        [
            Measure("memory, one rule, large tensors", ONE, "MB", anonymous, "<= 500 MB"),
            Measure("memory of smdebug, large tensors", OLDER, "MB", anonymous),
        ],
    ),
    "memory": Case(
        "memory",
        1,
        one_watched,
        [Measure("memory, one rule, three times the steps", ONE, "MB", anonymous, "<= 500 MB")],
    ),
    "twelve-memory": Case(
        "rules",
        1,
        twelve_watched,
        [Measure("memory, twelve rules", TOGETHER, "MB", anonymous, "<= 500 MB")],
    ),
    "start": Case(
        "tiny",
        9,
        starts,
        [
            Row(
                f"processor time: {EVALUATE}",
                *(EVALUATE, [IMPORT_NUMPY], IMPORT_NUMPY, "<= 2.5"),
                share=True,
                of=cpu,
            ),
            Row(
                f"processor time: {HELP}",
                *(HELP, [IMPORT_CLICK], IMPORT_CLICK, "<= 1.3"),
                share=True,
                of=cpu,
            ),
            Measure(HELP, HELP, "ms", lambda took: took.seconds * 1e3, "<= 150 ms"),
            Measure(PYTHON, PYTHON, "ms", lambda took: took.seconds * 1e3),
            Measure("heavy modules imported by --help", IMPORTS, "", heavy, "0"),
        ],
    ),
}
