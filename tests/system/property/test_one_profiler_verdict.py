"""One verdict of profiler rules: live as afterwards, in any order of files, alone or together."""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import evaluating
import numpy as np
import profiler_writer as writer
import pytest
import timeline_writer
from evaluating import Script, WoundClock
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_store import MemoryStore
from profiler_writer import BEGIN_S, BEGIN_US, END, Series
from timeline_writer import Event

from builtin_rules.profiler_table import PROFILER_RULES
from rule_core.profiler.system.source import SystemSource
from rule_core.profiler.traces.source import TraceSource
from rule_runner.config.model import RuleJobConfig
from rule_runner.config.profiler_windows import over_windows
from rule_runner.results.schema import RuleResult

EXAMPLES = settings(max_examples=6, deadline=None, print_blob=True)
RULES = tuple(sorted(set(PROFILER_RULES) - {"ProfilerReport"}))  # it runs all others
# So that rules judge jobs of some minutes, and fire here and there.
PARAMETERS = {
    "BatchSize": {"patience": "20", "window": "15"},
    "CPUBottleneck": {"patience": "10", "threshold": "5"},
    "Dataloader": {"patience": "2"},
    "GPUMemoryIncrease": {"patience": "12", "window": "3", "increase": "1"},
    "IOBottleneck": {"patience": "10", "threshold": "5"},
    "LoadBalancing": {"patience": "10"},
    "LowGPUUtilization": {"patience": "10", "window": "10"},
    "MaxInitializationTime": {"threshold": "2"},
    "StepOutlier": {"n_outliers": "1"},
}
SLOWEST_S = 100  # behind the fastest writer; two minutes more are between names and contents


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


class Arrival(NamedTuple):
    """A file, and when it is there."""

    at_s: float
    key: str
    content: bytes


def system(chance: random.Random, node: int, minutes: int) -> Iterator[Arrival]:
    """Yield a node's files of system metrics, each when its minute is over."""
    values = np.random.default_rng(chance.randrange(1 << 30))
    count = 12 * minutes - chance.randrange(12)
    begin_s = chance.choice([0, 0, 7, 65])

    def series(kind: str, dimension: str, name: str, most: float, late_s: int = 0) -> Series:
        found = values.uniform(0, most, count)
        at_s = float(begin_s + late_s)
        return Series(kind, dimension, name, found, f"algo-{node}", at_s, every_s=5.0)

    parts = [series("cpu", "CPUUtilization", "cpu0", 100)]
    parts.append(series("cpu", "I/OWaitPercentage", "cpu0", 100))
    for number in range(2):
        late_s = chance.choice([0, 0, 35])
        gpu = f"gpu{number}"
        parts.append(series("gpu", "GPUUtilization", gpu, 50 * (number + 1), late_s))
        parts.append(series("gpu", "GPUMemoryUtilization", gpu, 50, late_s))
    for key, content in writer.files(*parts).items():
        yield Arrival(int(key.rpartition("/")[2][:10]) + 60, key, content)


def timelines(chance: random.Random, node: int, minutes: int) -> Iterator[Arrival]:
    """Yield a process's timelines, each a minute or a little more long."""
    events: list[Event] = []
    now = begun = chance.choice([0, 10, 200])
    number = 0
    while now < 60 * minutes:
        length = chance.choice([1, 1, 1, 1, 2, 8])
        events.append(timeline_writer.step(number, now * 1e6, length * 1e6))
        name = "_MultiProcessingDataLoaderIter.__next__"
        events.append(Event("DataLoaderIter", name, now * 1e6, 1e5, {"pid": 11}))
        now, number = now + length, number + 1
        if now - begun >= 60 or now >= 60 * minutes:
            key = timeline_writer.key(BEGIN_US + int(now * 1e6), f"1{node}-algo-{node}")
            text = timeline_writer.text(timeline_writer.records(events, BEGIN_US))
            yield Arrival(BEGIN_S + now, key, text.encode())
            events, begun = [], now


def job(chance: random.Random) -> list[Arrival]:
    """Return the files of a job as they come: each writer is late by a time of its own."""
    found: list[Arrival] = []
    minutes = chance.randint(3, 7)
    for node in range(1, chance.randint(1, 3) + 1):
        for files in (system, timelines):
            if files is system or chance.random() < 0.7:
                late_s = chance.uniform(0, SLOWEST_S)
                found += (
                    one._replace(at_s=one.at_s + late_s + chance.uniform(0, 5))
                    for one in files(chance, node, minutes)
                )
    return sorted(found)


class Arriving(Script):
    """Lets some files come at each wait, and the end mark after the last."""

    def __init__(self, files: list[Arrival], here: dict[str, bytes], chance: random.Random) -> None:
        super().__init__(WoundClock(BEGIN_S + 60.0))
        self._files = list(files)
        self._here = here
        self._chance = chance

    def wait(self, seconds: float) -> None:
        for _ in range(self._chance.choice([0, 1, 1, 2, 3])):
            if not self._files:
                self._here.update(END)
                break
            at_s, key, content = self._files.pop(0)
            self._here[key] = content
            self.clock.now = max(self.clock.now, at_s)
        super().wait(seconds)


def verdict(result: RuleResult) -> dict[str, Any]:
    """Return all of a result that must not depend on when files came."""
    seen = result.coverage
    return {
        "outcome": result.outcome,
        "window": result.step,
        "evidence": result.evidence,
        "findings": result.findings_count,
        "judged": (seen.judged, seen.first, seen.last),
        "skipped": seen.skipped,
        "missing": seen.missing_workers,
        "notes": result.notes,
    }


def rule(name: str) -> RuleJobConfig:
    return over_windows(evaluating.rule_job(name, parameters=PARAMETERS.get(name, {})))


def judged(
    files: dict[str, bytes],
    *names: str,
    keep_going: bool = True,
    script: Script | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the verdicts of rules by name; without names of all."""
    with tempfile.TemporaryDirectory() as folder:
        wait = {} if script is None else {"wait_for_trial": float("inf")}
        jobs = [rule(name) for name in names or RULES]
        config = evaluating.configured(Path(folder), jobs, keep_going=keep_going, **wait)
        found = evaluating.runner(config, MemoryStore(files), script).run()
    return {one.rule: verdict(one) for one in found.result.rules}


def finished(files: list[Arrival]) -> dict[str, bytes]:
    return {one.key: one.content for one in files} | END


@EXAMPLES
@given(seed=st.integers(0, 2**32), keep_going=st.booleans())
def test_live_as_afterwards(seed: int, keep_going: bool) -> None:
    chance = random.Random(seed)
    files = job(chance)
    here: dict[str, bytes] = {}
    live = judged(here, keep_going=keep_going, script=Arriving(files, here, chance))
    assert judged(finished(files), keep_going=keep_going) == live


@EXAMPLES
@given(seed=st.integers(0, 2**32), size=st.sampled_from([0, 3000, 20_000]))
def test_alone_and_without_memory_as_together(seed: int, size: int) -> None:
    chance = random.Random(seed)
    files = finished(job(chance))
    together = judged(files)
    name = chance.choice(RULES)
    with pytest.MonkeyPatch.context() as patch:
        for source in (SystemSource, TraceSource):
            patch.setattr(source.__init__, "__defaults__", (size,))
        assert judged(files) == together
        assert judged(files, name) == {name: together[name]}
