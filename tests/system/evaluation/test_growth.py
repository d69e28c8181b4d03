"""Growth: reads, listings and queries of an evaluation grow linearly with the trial.

No test asserts a time. A store counts what is read, and a profile counts calls of Python.
"""

import cProfile
import pstats
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest
from evaluating import configured, rule_job

from rule_core.storage.base import ByteRange
from rule_core.storage.local import LocalFile, LocalStore
from rule_runner.engine.runner import Runner
from rule_runner.results.schema import RuleResult
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter

STEPS, TENSORS, WORKERS = 12, 6, 3
TIMES = 4  # larger
SLACK = 1.15  # of the ratio of two sizes, for what is done once


def written(
    root: Path, steps: int = STEPS, tensors: int = TENSORS, workers: int = 1, value: float = 1.5
) -> Path:
    """Write a trial of gradients, and return its root."""
    values = {f"gradient/layer{at}/weight": np.full(4, value, "f4") for at in range(tensors)}
    writers = [
        TrialWriter(
            root,
            collections={"gradients": "^gradient"},
            worker=f"worker_{at}",
            num_workers=workers,
            end_job=at == workers - 1,
        )
        for at in range(workers)
    ]
    for step in range(steps):
        for writer in writers:
            writer.step(step, values, mode=ModeKeys.TRAIN)
    for writer in writers:
        writer.close()
    return root


def evaluated(root: Path, rule: str) -> RuleResult:
    """Judge all steps of a trial."""
    output = root.parent / f"{root.name}-out"
    more = {"keep_going": True, "wait": False, "end_grace": 0.0}
    config = configured(output, [rule_job(rule)], str(root), **more)
    return Runner(config).run().result.rules[0]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts what is asked of local stores."""
    counts: Counter[str] = Counter()
    read, opened, walk = LocalStore.read, LocalStore.opened, LocalStore._walk
    read_into = LocalFile.read_into

    def count_read(self: LocalStore, key: str, byte_range: ByteRange | None = None) -> memoryview:
        counts["read"] += 1
        return read(self, key, byte_range)

    def count_opened(self: LocalStore, key: str) -> AbstractContextManager[LocalFile]:
        counts["opened"] += 1
        return opened(self, key)

    def count_walk(self: LocalStore, *arguments: str) -> Iterator[str]:
        counts["listed"] += 1
        return walk(self, *arguments)

    def count_read_into(self: LocalFile, start: int, buffers: list[memoryview]) -> int:
        counts["read into"] += 1
        counts["bytes"] += (nbytes := read_into(self, start, buffers))
        return nbytes

    monkeypatch.setattr(LocalStore, "read", count_read)
    monkeypatch.setattr(LocalStore, "opened", count_opened)
    monkeypatch.setattr(LocalStore, "_walk", count_walk)
    monkeypatch.setattr(LocalFile, "read_into", count_read_into)
    return counts


SIZES = [
    pytest.param({"steps": STEPS}, id="steps"),
    pytest.param({"tensors": TENSORS}, id="tensors"),
    pytest.param({"workers": WORKERS}, id="workers"),
]


@pytest.mark.parametrize("size", SIZES)
def test_reads_and_listings_grow_linearly(
    tmp_path: Path, reads: Counter[str], size: dict[str, int]
) -> None:
    counts = []
    for times in (1, TIMES):
        larger = {name: number * times for name, number in size.items()}
        root = written(tmp_path / f"{times}", **larger)
        reads.clear()
        result = evaluated(root, "VanishingGradient")
        assert result.coverage.judged == larger.get("steps", STEPS)
        counts.append(+reads)
    small, large = counts
    assert set(large) == {"read", "opened", "listed", "read into", "bytes"}
    for what, number in large.items():
        assert number <= SLACK * TIMES * small[what], what


def calls(root: Path, rule: str) -> int:
    """Return the number of calls that an evaluation takes, of Python and of its library."""
    profile = cProfile.Profile()
    profile.runcall(evaluated, root, rule)
    stats = pstats.Stats(profile)
    total: int = stats.total_calls  # type: ignore[attr-defined]
    return total


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("rule", "value"), [("VanishingGradient", 1.5), ("ExplodingTensor", np.nan)]
)
def test_calls_grow_linearly(tmp_path: Path, size: dict[str, int], rule: str, value: float) -> None:
    evaluated(written(tmp_path / "first"), rule)  # imports, and fills caches
    small, large = (
        calls(
            written(
                tmp_path / f"{times}",
                value=value,
                **{name: number * times for name, number in size.items()},
            ),
            rule,
        )
        for times in (1, TIMES)
    )
    assert large <= SLACK * TIMES * small
