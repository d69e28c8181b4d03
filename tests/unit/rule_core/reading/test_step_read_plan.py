"""StepPlan: gives the results of single reads in few reads, and none for odd tensors."""

import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any, Final

import numpy as np
import pytest
import rawtrial
import steps_saved
from memory_store import MemoryFile

from rule_core.format.index_file import Entry, Span
from rule_core.format.record_layout import RecordLayout, learn_layout
from rule_core.model import streaming_statistics
from rule_core.model.array_difference import ChangeNorms, Tolerance
from rule_core.model.element_statistics import ZeroCount
from rule_core.model.reductions import Reduction, compute
from rule_core.model.streaming_statistics import Piece, Want, measure
from rule_core.reading import chunked_reads, step_read_plan
from rule_core.reading.step_read_plan import StepPlan

MEAN, L2, STD, TOP = Reduction("mean"), Reduction("l2"), Reduction("std"), Reduction("max", True)
ZEROS, CHANGE, TOLERANCE = ZeroCount(), ChangeNorms(), Tolerance(0.5, 0.25)
PIECE: Final = 64
REAL: Final = [number for number in rawtrial.NUMBERS if not number.startswith("complex")]
Values = Mapping[str, Any]


class Watched(MemoryFile):
    """Remembers what was read of it: where, and into how many bytes each time."""

    def __init__(self, content: bytes) -> None:
        super().__init__(memoryview(content))
        self.read: list[tuple[int, list[int]]] = []
        self.into: list[Sequence[memoryview]] = []

    def read_into(self, start: int, buffers: Sequence[memoryview]) -> int:
        self.read.append((start, [len(buffer) for buffer in buffers]))
        self.into.append(buffers)
        return super().read_into(start, buffers)


@dataclass(frozen=True)
class Step:
    """An event file, what its index file says, and its tensors."""

    content: bytes
    entries: dict[str, Entry]
    values: Values

    @property
    def opened(self) -> tuple[Watched, dict[str, Entry]]:
        return Watched(self.content), self.entries

    def damaged(self, at: int) -> "Step":
        """Return it with one bit changed."""
        content = bytearray(self.content)
        content[at] ^= 1
        return Step(bytes(content), self.entries, self.values)


def saved(values: Values, step: int = 1, *, first: int = 0, gap: int = 0) -> Step:
    """Return a step whose records lie so many bytes apart, the first behind some."""
    content, entries = bytes(first), {}
    for name, array in values.items():
        record = steps_saved.record(array, step, name, behind=b"\x4a\x03abc")
        entries[name] = Entry(raw=Span(len(content), len(record)))
        content += record + bytes(gap)
    return Step(content, entries, values)


def wanted(names: Iterable[str], *wants: Want) -> dict[Want, frozenset[str]]:
    return dict.fromkeys(wants, frozenset(names))


def plan_of(
    step: Step, wants: Mapping[Want, frozenset[str]], layouts: dict[Any, RecordLayout] | None = None
) -> StepPlan:
    """Return the plan for a step whose layouts it may learn."""

    def learn(_: str, span: Span) -> RecordLayout | None:
        return learn_layout(step.opened[0], span, "key")

    return StepPlan(step.entries, wants, {} if layouts is None else layouts, learn)


def exactly(value: Any) -> Any:
    return (value.dtype, value.tobytes()) if isinstance(value, np.generic) else value


def told(plan: StepPlan, *steps: Step) -> dict[Want, dict[str, Any]]:
    """Return the results of a plan for a step and the ones before it."""
    result = plan.carry_out({back: one.opened for back, one in enumerate(steps)})
    return {
        want: {name: exactly(value) for name, value in values.items()}
        for want, values in result.items()
    }


def expected(wants: Mapping[Want, frozenset[str]], *steps: Step) -> dict[Want, dict[str, Any]]:
    """Return the results of reading each tensor alone."""
    found: dict[Want, dict[str, Any]] = {}
    for (one, back), names in wants.items():
        for name in names:
            array = steps[0].values[name]
            before = steps[back].values[name] if back else None
            alone = (
                compute(array, *one)
                if isinstance(one, Reduction)
                else measure(array, [one], before)[one]
            )
            found.setdefault((one, back), {})[name] = exactly(alone)
    return found


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pieces be short, and small tensors fit them."""
    for module in (streaming_statistics, chunked_reads, step_read_plan):
        monkeypatch.setattr(module, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(step_read_plan, "SMALL", 40)
    monkeypatch.setattr(step_read_plan, "NEAR", 16)


def values(seed: int, dtypes: Sequence[str], sizes: Sequence[int]) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    return {
        f"{dtype}{size}": (draw.normal(0, 9, size) * draw.integers(0, 2, size)).astype(
            rawtrial.dtype_of(dtype)
        )
        for dtype in dtypes
        for size in sizes
    }


@pytest.mark.parametrize("sizes", [[1, 2, 3], [100, 16, 17, 32], [1, 5, 10, 11, 64, 65, 200]])
@pytest.mark.parametrize("dtypes", [["float32"], REAL])
@pytest.mark.parametrize(("first", "gap"), [(0, 0), (1, 0), (3, 5), (0, 100)])
def test_each_tensor_tells_what_it_tells_alone(
    sizes: list[int], dtypes: list[str], first: int, gap: int
) -> None:
    now, later = (saved(values(seed, dtypes, sizes), seed, first=first, gap=gap) for seed in (1, 2))
    some = [(MEAN, 0), (STD, 0), (TOP, 0), (L2, 0)]
    wants = wanted(now.values, *some)
    plan = plan_of(now, wants)
    for step in (now, later):
        assert plan.serves(step.entries, wants)
        assert told(plan, step) == expected(wants, step)


@pytest.mark.parametrize(
    "some",
    [[TOP], [TOP, Reduction("l1"), Reduction("std", True)], [TOP, MEAN], [TOP, ZEROS]],
    ids=["magnitudes", "several", "elements-too", "others-too"],
)
def test_magnitudes_may_replace_elements_that_nobody_looks_at(some: list[Any]) -> None:
    step = saved(values(1, REAL, [16, 17, 100]))
    wants = wanted(step.values, *((one, 0) for one in some))
    assert told(plan_of(step, wants), step) == expected(wants, step)


def test_different_things_may_be_wanted_of_each() -> None:
    step = saved(values(1, ["float32", "int8"], [3, 100]))
    names = sorted(step.values)
    wants: dict[Want, frozenset[str]] = {
        (MEAN, 0): frozenset(names[:3]),
        (ZEROS, 0): frozenset(names[1:]),
        (TOP, 0): frozenset(names[2:3]),
    }
    assert told(plan_of(step, wants), step) == expected(wants, step)


def test_small_tensors_are_read_together_and_large_ones_by_the_piece() -> None:
    step = saved({name: np.ones(size) for name, size in (("a", 2), ("b", 1), ("c", 20), ("d", 3))})
    spans = {name: entry.raw for name, entry in step.entries.items()}
    wants = wanted(step.values, (MEAN, 0))
    plan = plan_of(step, wants)
    opened = step.opened
    plan.carry_out({0: opened})
    file = opened[0]
    a, b, c, d = (spans[name] or Span(0, 0) for name in "abcd")
    head = c.length - 160 - 4 - 5
    assert file.read == [
        (a.start, [a.length + b.length]),
        (d.start, [d.length]),
        (c.start, [head, PIECE]),
        (c.start + head + PIECE, [PIECE]),
        (c.start + head + 2 * PIECE, [160 - 2 * PIECE, 4 + 5]),
    ]
    assert plan.nbytes == a.length + b.length + c.length + d.length == len(step.content)


def test_shapes_are_reported() -> None:
    step = saved({"small": np.ones((1, 2)), "large": np.ones((3, 4, 5))})
    plan = plan_of(step, wanted(step.values, (MEAN, 0)))
    assert plan.shapes == {"small": (1, 2), "large": (3, 4, 5)}


@pytest.mark.parametrize(("gap", "reads"), [(0, 1), (16, 1), (17, 3)])
def test_near_ones_are_read_with_what_lies_between(gap: int, reads: int) -> None:
    step = saved({name: np.ones(2) for name in "cab"}, gap=gap)
    wants = wanted(step.values, (MEAN, 0))
    opened = step.opened
    assert plan_of(step, wants).carry_out({0: opened}) == {(MEAN, 0): {"a": 1, "b": 1, "c": 1}}
    assert len(opened[0].read) == reads


def test_records_may_lie_in_any_order_or_be_one() -> None:
    step = saved(values(1, ["float32"], [3, 4, 50]))
    first, *_ = step.entries
    step.entries["again"] = step.entries[first]
    both = Step(step.content, dict(reversed(step.entries.items())), step.values)
    layouts: dict[Any, RecordLayout] = {}
    wants = wanted(both.entries, (MEAN, 0))
    found = told(plan_of(both, wants, layouts), both)[MEAN, 0]
    assert found.pop("again") == found[first]
    assert {(MEAN, 0): found} == expected(wanted(step.values, (MEAN, 0)), step)


# -- earlier values -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int16", "bool"])
def test_values_are_compared_with_those_of_steps_before(dtype: str) -> None:
    steps = [
        saved(values(seed, [dtype], [1, 3, 40, 100]), seed, first=seed) for seed in (4, 3, 2, 1)
    ]
    names = steps[0].values
    wants = wanted(names, (CHANGE, 1), (TOLERANCE, 1), (CHANGE, 3), (MEAN, 0), (ZEROS, 0))
    plan = plan_of(steps[0], wants)
    assert plan.backs == {0, 1, 3}
    assert told(plan, *steps) == expected(wants, *steps)


def test_without_the_step_before_only_what_needs_it_is_left_out() -> None:
    now, before = saved(values(2, ["float32"], [3, 100])), saved(values(1, ["float32"], [3]))
    wants: dict[Want, frozenset[str]] = {
        (CHANGE, 1): frozenset(["float323"]),
        (MEAN, 0): frozenset(["float32100"]),
    }
    plan = plan_of(now, wants)
    alone = expected({(MEAN, 0): wants[MEAN, 0]}, now)
    assert told(plan, now) == {**alone, (CHANGE, 1): {}}
    assert told(plan, now, before) == expected(wants, now, before)


@pytest.mark.parametrize(
    "other",
    [
        np.ones(101, np.float32),
        np.ones((10, 10), np.float32),
        np.ones(100, np.int32),
        np.ones(200, np.float16),
        np.array(["x"]),
        None,
    ],
    ids=["size", "shape", "type", "halves", "strings", "nothing"],
)
@pytest.mark.parametrize("known", [True, False])
def test_nothing_is_compared_with_a_value_of_another_kind(other: Any, known: bool) -> None:
    now = saved({"w": np.ones(100, np.float32), "v": np.zeros(90)})
    earlier = {} if other is None else {"w": other}
    before = saved(earlier | {"v": np.ones(90)})
    layouts: dict[Any, RecordLayout] = {}
    if known:
        plan_of(before, wanted(before.values, (ZEROS, 0)), layouts)
    plan = plan_of(now, wanted("wv", (CHANGE, 1)), layouts)
    assert told(plan, now, before) == {(CHANGE, 1): {"v": (90**0.5, 90**0.5)}}


def test_earlier_value_is_compared_once_its_place_is_known() -> None:
    now, before = (saved(values(step, ["float32"], [100]), step) for step in (128, 127))
    layouts: dict[Any, RecordLayout] = {}
    wants = wanted(now.values, (CHANGE, 1))
    plan = plan_of(now, wants, layouts)
    assert told(plan, now, before) == {(CHANGE, 1): {}}
    plan_of(before, wants, layouts)
    assert told(plan, now, before) == expected(wants, now, before)


def test_earlier_values_may_lie_elsewhere_at_the_next_step() -> None:
    steps = [saved(values(step, ["float32"], [100]), step, first=step) for step in (3, 2, 1)]
    wants = wanted(steps[0].values, (CHANGE, 1))
    plan = plan_of(steps[0], wants)
    for before in steps[1:]:
        assert told(plan, steps[0], before) == expected(wants, steps[0], before)


# -- what is left to others -----------------------------------------------------------------------


def test_saved_reductions_are_never_computed() -> None:
    step = saved(values(1, ["float32"], [3, 100]))
    reduced = saved({"r": np.ones(1)})
    for name in step.values:
        step.entries[name].reductions = {("mean", False): Span(0, len(reduced.content))}
    wants = wanted(step.values, (MEAN, 0), (Reduction("mean", True), 0), (ZEROS, 0))
    there = {want: names for want, names in wants.items() if want[0] != MEAN}
    assert told(plan_of(step, wants), step) == {**expected(there, step), (MEAN, 0): {}}


def test_where_reductions_come_to_be_saved_another_plan_is_due() -> None:
    now, later = (saved(values(1, ["float32"], [3, 100])) for _ in range(2))
    wants = wanted(now.values, (MEAN, 0))
    plan = plan_of(now, wants)
    assert plan.serves(later.entries, wants)
    later.entries["float323"].reductions = {("max", False): Span(0, 5)}
    other = Step(later.content, dict(later.entries), later.values)
    assert not plan.serves(other.entries, wants)


@pytest.mark.parametrize(
    "odd",
    [np.array(["a", "b"]), np.zeros(0), np.ones(30, np.complex64), np.zeros((3, 0), np.int8)],
    ids=["strings", "nothing", "complex", "empty"],
)
def test_what_holds_no_real_numbers_is_left_to_others(odd: Any) -> None:
    step = saved({"odd": odd, "w": np.ones(3), "v": np.ones(40)})
    step.entries["shape"] = Entry(shape=(1,))
    median, nope = Reduction("median"), Reduction("nope")
    names = [*step.entries, "never"]
    wants = wanted(names, (MEAN, 0), (ZEROS, 0), (CHANGE, 1), (median, 0), (nope, 0))
    found = told(plan_of(step, wants), step, step)
    whole: list[Want] = [(median, 0), (nope, 0)]
    assert {want: "".join(sorted(named)) for want, named in found.items()} == {
        want: "" if want in whole else "vw" for want in wants
    }


@pytest.mark.parametrize("place", ["before", "behind"])
@pytest.mark.parametrize("name", ["float323", "float324", "float3250", "float3260"])
def test_damage_leaves_nothing_wrong(name: str, place: str) -> None:
    step = saved(values(1, ["float32"], [3, 4, 50, 60]))
    wants = wanted(step.values, (MEAN, 0), (TOP, 0))
    plan, span = plan_of(step, wants), step.entries[name].raw or Span(0, 0)
    broken = step.damaged(span.start + (3 if place == "before" else span.length - 2))
    found, right = told(plan, broken), expected(wants, step)
    assert {want: name in values for want, values in found.items()} == dict.fromkeys(wants, False)
    assert all(
        right[want][one] == value for want, named in found.items() for one, value in named.items()
    )
    assert {"float3250", "float3260"} - {name} <= set(found[MEAN, 0])


@pytest.mark.parametrize("lost", [1, 5, 100, 400, 10**6])
def test_short_file_leaves_nothing_wrong(lost: int) -> None:
    step = saved(values(1, ["float32"], [50, 3, 60, 4]))
    wants = wanted(step.values, (MEAN, 0), (CHANGE, 1))
    short = Step(step.content[: max(len(step.content) - lost, 0)], step.entries, step.values)
    plan = plan_of(step, wants)
    right = expected(wants, step, step)
    for steps in ((short, step), (step, short)):
        found = told(plan, *steps)
        assert all(
            right[want][one] == value
            for want, named in found.items()
            for one, value in named.items()
        )
        assert "float324" not in found[CHANGE, 1]


@pytest.mark.parametrize("at", [3, -2])
def test_damage_at_a_step_is_gone_at_the_next(at: int) -> None:
    step = saved(values(1, ["float32"], [50, 60]))
    wants = wanted(step.values, (MEAN, 0))
    plan, span = plan_of(step, wants), step.entries["float3260"].raw or Span(0, 0)
    broken = step.damaged(span.start + at % span.length)
    right = expected(wants, step)
    others = {(MEAN, 0): {"float3250": right[MEAN, 0]["float3250"]}}
    assert [told(plan, one) for one in (step, broken, step)] == [right, others, right]


def test_tensor_of_another_shape_in_a_record_as_long_is_left_out() -> None:
    now, later = (
        saved({"s": np.ones(shape, np.float32), "l": np.ones(large)})
        for shape, large in (((2, 3), (4, 5)), ((3, 2), (5, 4)))
    )
    wants = wanted("sl", (MEAN, 0))
    plan = plan_of(now, wants)
    assert plan.serves(later.entries, wants)
    assert told(plan, later) == {(MEAN, 0): {}}


def test_tensor_of_another_shape_than_the_plan_tells_is_left_out() -> None:
    now, later = (saved({"l": np.ones(shape)}) for shape in ((4, 5), (5, 4)))
    layouts: dict[Any, RecordLayout] = {}
    wants = wanted("l", (MEAN, 0))
    plan = plan_of(now, wants, layouts)
    plan_of(later, wants, others := {})
    assert len(layouts) == len(others) == 1
    layouts |= others
    assert plan.serves(later.entries, wants)
    assert (plan.shapes["l"], told(plan, later)) == ((4, 5), {(MEAN, 0): {}})


# -- which steps a plan is for --------------------------------------------------------------------


def test_plan_serves_what_lies_in_the_same_places_and_is_wanted_alike() -> None:
    sizes = [3, 100]
    now, other = (saved(values(1, ["float32"], sizes), 5) for _ in range(2))
    wants = wanted(now.values, (MEAN, 0))
    plan = plan_of(now, wants)
    assert plan.serves(now.entries, wants)
    assert plan.serves(other.entries, wants)
    assert not plan.serves(other.entries, wanted(now.values, (TOP, 0)))
    assert not plan.serves(saved(now.values, 5, first=1).entries, wants)
    assert not plan.serves({"float323": now.entries["float323"]}, wants)
    without = {name: Entry(reductions={("mean", False): Span(0, 1)}) for name in now.values}
    assert not plan.serves(without, wants)
    more = other.entries | {"more": now.entries["float323"]}
    assert plan.serves(more, wants)


def test_plan_serves_no_more_when_more_can_be_told() -> None:
    step = saved({"w": np.ones(3), "v": np.ones(4)})
    wants = wanted("wv", (MEAN, 0))
    layouts: dict[Any, RecordLayout] = {}
    plan = StepPlan(step.entries, wants, layouts, lambda _, __: None)
    assert plan.serves(step.entries, wants)
    assert told(plan, step) == {(MEAN, 0): {}}
    assert plan.nbytes == 0
    plan_of(step, wanted("w", (MEAN, 0)), layouts)
    assert not plan.serves(step.entries, wants)


def test_layouts_are_learnt_once_for_each_name_and_length() -> None:
    step = saved({"w": np.ones(3), "v": np.ones(3), "x": np.array(["a"])})
    asked: list[tuple[str, Span]] = []

    def learn(name: str, span: Span) -> RecordLayout | None:
        asked.append((name, span))
        return learn_layout(step.opened[0], span, "key")

    layouts: dict[Any, RecordLayout] = {}
    step.entries["shape"] = Entry(shape=(1,))
    wants = wanted(["w", "v", "shape", "never"], (MEAN, 0), (TOP, 0), (CHANGE, 1))
    for _ in range(2):
        StepPlan(step.entries, wants, layouts, learn)
    spans = {name: step.entries[name].raw for name in "wv"}
    assert dict(asked) == spans
    assert len(asked) == 2
    assert {what: layout.size for (what, _), layout in layouts.items()} == {
        ("w", None): 3,
        ("v", None): 3,
    }


# -- memory and threads ---------------------------------------------------------------------------


def test_steps_alike_are_read_by_the_same_calls_into_the_same_memory() -> None:
    now, before, other = (saved(values(seed, ["float32"], [50, 100]), 1) for seed in (1, 2, 3))
    later = Step(other.content, now.entries, other.values)
    plan = plan_of(now, wanted(now.values, (CHANGE, 1), (MEAN, 0)))
    files = []
    for step in (now, later):
        opened = {0: step.opened, 1: before.opened}
        plan.carry_out(opened)
        files.append([file for file, _ in opened.values()])
    for first, second in zip(*files, strict=True):
        assert first.read == second.read
        assert [*map(id, first.into)] == [*map(id, second.into)]


def test_plan_does_not_hold_on_to_files() -> None:
    step = saved(values(1, ["float32"], [50, 100]))
    plan = plan_of(step, wanted(step.values, (MEAN, 0)))
    opened = step.opened
    file = weakref.ref(opened[0])
    plan.carry_out({0: opened})
    del opened
    assert file() is None


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_at_one_plan_have_memory_of_their_own(threads: int) -> None:
    meeting = Barrier(threads)

    class Waiting:
        """Measures the elements, when all threads have got theirs."""

        def part(self, piece: Piece, before: Piece | None = None) -> Any:
            meeting.wait(60)
            magnitudes = piece.magnitudes
            meeting.wait(60)
            earlier = [] if before is None else before.elements.tolist()
            return piece.elements.tolist() + magnitudes.tolist() + earlier

        def join(self, parts: Sequence[Any], size: int, dtype: "np.dtype[Any]") -> Any:
            del size, dtype
            return [*parts]

    steps = [saved({"w": np.full(20, float(number))}) for number in range(threads + 1)]
    wants = wanted("w", (Waiting(), 1))
    plan = plan_of(steps[0], wants)
    for _ in range(2):
        with ThreadPoolExecutor(threads) as pool:
            pairs = [(steps[number], steps[number + 1]) for number in range(threads)]
            found = [
                *pool.map(
                    lambda pair: plan.carry_out({0: pair[0].opened, 1: pair[1].opened}), pairs
                )
            ]
        assert [[{*part} for part in one[want]["w"]] for one in found for want in wants] == [
            [{number, number + 1.0}] * 3 for number in range(threads)
        ]


def test_measures_cannot_change_what_the_others_see() -> None:
    class Careless:
        def part(self, piece: Piece, before: Piece | None = None) -> Any:
            del before
            piece.elements[:] = 7.0

        def join(self, parts: Sequence[Any], size: int, dtype: "np.dtype[Any]") -> Any:
            del parts, size, dtype

    step = saved({"w": np.ones(20)})
    plan = plan_of(step, wanted("w", (Careless(), 0), (ZEROS, 0)))
    with pytest.raises(ValueError, match="read-only"):
        plan.carry_out({0: step.opened})
