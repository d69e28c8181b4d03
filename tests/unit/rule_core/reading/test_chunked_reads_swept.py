"""The kernel reads files of the system: results are those of reading through Python."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import rawtrial
import steps_saved
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import using
from memory_store import MemoryFile

from rule_core.format.index_file import Entry, Span
from rule_core.format.record_layout import RecordLayout, learn_layout
from rule_core.kernels.sweep import Sweep, has_kernel
from rule_core.model import streaming_statistics
from rule_core.model.array_difference import ChangeNorms, Tolerance
from rule_core.model.element_statistics import Activity, NonFiniteCount, ZeroCount
from rule_core.model.reductions import Reduction
from rule_core.model.streaming_statistics import Want, kernel_operation
from rule_core.reading import chunked_reads, step_read_plan
from rule_core.reading.step_read_plan import StepPlan
from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.local import LocalFile

PIECE: Final = 64
REAL: Final = [number for number in rawtrial.NUMBERS if not number.startswith("complex")]
WANTS: Final[list[Want]] = [
    *((Reduction(name, absolute), 0) for name in ("min", "max") for absolute in (False, True)),
    *((Reduction(name, absolute), 0) for name in ("mean", "std") for absolute in (False, True)),
    *((Reduction(name), 0) for name in ("sum", "l1", "l2", "prod")),
    *((ZeroCount(), 0), (NonFiniteCount(), 0), (Activity(0.1), 0), (Activity(-1.0, 1.0), 0)),
    *((ChangeNorms(), 1), (ChangeNorms(), 2), (Tolerance(0.5, 0.25), 1), (Tolerance(0.5, 0.25), 0)),
]

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the compiled kernel")


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    """Let pieces be short, small tensors fit them, and threads start for less."""
    with small():
        yield


def small() -> ExitStack:
    """Return what changes the limits of plans until it is closed."""
    stack = ExitStack()
    patch = stack.enter_context(pytest.MonkeyPatch.context())
    for module in (streaming_statistics, chunked_reads, step_read_plan):
        patch.setattr(module, "PIECE_BYTES", PIECE)
    patch.setattr(step_read_plan, "SMALL", 40)
    patch.setattr(chunked_reads, "MIN_THREADED_BYTES", 100)
    patch.setattr(chunked_reads, "measuring_threads", lambda: 3)
    return stack


class Step:
    """An event file in memory and in the system, and its entries."""

    def __init__(self, values: Mapping[str, Any], number: int, stack: ExitStack) -> None:
        content, self.entries = b"", {}
        for name, array in values.items():
            record = steps_saved.record(array, number, name, behind=b"\x4a\x03abc")
            self.entries[name] = Entry(raw=Span(len(content), len(record)))
            content += record
        self.content = content
        self.fd = os.memfd_create(f"step{number}")
        stack.callback(os.close, self.fd)
        self.change(content)

    def change(self, content: bytes) -> None:
        """Give the file another content."""
        self.content = content
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, content, 0)

    @property
    def in_memory(self) -> tuple[MemoryFile, dict[str, Entry]]:
        return MemoryFile(memoryview(self.content)), self.entries

    @property
    def in_system(self) -> tuple[LocalFile, dict[str, Entry]]:
        return LocalFile("key", self.fd, len(self.content)), self.entries


def plan_of(step: Step, wants: list[Want]) -> StepPlan:
    original = MemoryFile(memoryview(step.content))

    def learn(_: str, span: Span) -> RecordLayout | None:
        return learn_layout(original, span, "key")

    return StepPlan(step.entries, dict.fromkeys(wants, frozenset(step.entries)), {}, learn)


def exactly(value: Any) -> Any:
    """Return an answer so that equal ones are the same bit by bit."""
    if isinstance(value, tuple):
        return tuple(map(exactly, value))
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str, value.tobytes()
    return repr(value)


def answers(results: Mapping[Want, Mapping[str, Any]]) -> dict[Any, Any]:
    return {
        (want, name): exactly(value)
        for want, values in results.items()
        for name, value in values.items()
    }


def values_of(seed: int, dtypes: list[str], sizes: list[int]) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    values = {}
    with np.errstate(all="ignore"):
        for number, (dtype, size) in enumerate(zip(dtypes, sizes, strict=True)):
            array = rng.normal(0, 40, size) * rng.integers(0, 2, size)
            if seed % 3 == 0 and np.dtype(rawtrial.dtype_of(dtype)).kind in "fV":
                array[rng.integers(size)] = rng.choice([np.nan, np.inf, -np.inf])
            values[f"t{number}"] = array.astype(rawtrial.dtype_of(dtype))
    return values


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(REAL), st.integers(1, 90)), min_size=1, max_size=4),
    st.integers(0, 100),
    st.sets(st.sampled_from(WANTS), min_size=1),
    st.sampled_from(["sound", "damaged", "truncated"]),
    st.data(),
)
def test_results_are_those_of_python(
    forms: list[tuple[str, int]], seed: int, wants: set[Want], state: str, data: st.DataObject
) -> None:
    dtypes, sizes = [dtype for dtype, _ in forms], [size for _, size in forms]
    with ExitStack() as stack:
        stack.enter_context(small())
        steps = [Step(values_of(seed + back, dtypes, sizes), 7, stack) for back in range(3)]
        wanted = sorted(wants, key=WANTS.index)
        with using(None):
            by_numpy = plan_of(steps[0], wanted)
        by_kernel = plan_of(steps[0], wanted)
        for state_now in ("sound", state):  # as prepared, and prepared before
            if state_now != "sound":
                victim = steps[data.draw(st.integers(0, 2))]
                at = data.draw(st.integers(0, len(victim.content) - 1))
                damaged = bytearray(victim.content)
                damaged[at] ^= 1 << data.draw(st.integers(0, 7))
                victim.change(bytes(damaged if state == "damaged" else damaged[:at]))
            with using(None):
                expected = by_numpy.carry_out(
                    {back: step.in_memory for back, step in enumerate(steps)}
                )
            found = by_kernel.carry_out({back: step.in_system for back, step in enumerate(steps)})
            assert answers(found) == answers(expected)


@pytest.mark.parametrize("wants", [[(Reduction("mean"), 0)], WANTS])
def test_kernel_reads_what_it_can_measure(
    wants: list[Want], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []

    def run(sweep: Sweep, *_: Any, **__: Any) -> None:
        runs.append(sweep)
        raise ZeroDivisionError

    monkeypatch.setattr(Sweep, "prepare", run)
    with ExitStack() as stack:
        step = Step(values_of(1, ["float32"], [90]), 1, stack)
        plan = plan_of(step, [want for want in wants if kernel_operation(*want) is not None])
        before = {1: step.in_system, 2: step.in_system}
        with pytest.raises(ZeroDivisionError):
            plan.carry_out({0: step.in_system, **before})
    assert [len(sweep.pieces) for sweep in runs] == [-(-90 * 4 // PIECE)]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with ExitStack() as stack:
        steps = [Step(values_of(back, ["float32"], [50]), 1, stack) for back in range(2)]
        plan = plan_of(steps[0], [(ChangeNorms(), 1)])
        folder = os.open(tmp_path, os.O_RDONLY)
        stack.callback(os.close, folder)
        broken = LocalFile("folder", folder, 1000), steps[1].entries
        with pytest.raises(StorageUnavailableError, match=r"'folder': Is a directory\."):
            plan.carry_out({0: steps[0].in_system, 1: broken})


@pytest.mark.parametrize("missing", [1, 20, 200])
def test_a_file_that_became_shorter_costs_its_last_tensor_alone(missing: int) -> None:
    with ExitStack() as stack:
        step = Step(values_of(1, ["float32"] * 2, [90, 90]), 1, stack)
        plan = plan_of(step, [(Reduction("mean"), 0)])
        assert plan.carry_out({0: step.in_system})[Reduction("mean"), 0].keys() == {"t0", "t1"}
        step.change(step.content[:-missing])
        assert plan.carry_out({0: step.in_system})[Reduction("mean"), 0].keys() == {"t0"}
