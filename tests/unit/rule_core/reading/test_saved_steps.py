"""SavedSteps: steps are filed alike in whatever order their files come."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from rule_core.format.index_file import Entry, IndexFile, Layout
from rule_core.modes import ModeKeys
from rule_core.reading.saved_steps import SavedSteps


def file(step: int, worker: str, mode: ModeKeys, *names: str) -> IndexFile:
    entries = {name: Entry() for name in names}
    layout = Layout(entries, names, {}, has_records=False, first_record=None, end=0)
    return IndexFile(step, worker, None, mode, step // 2, None, layout, entries)


FILES = [
    file(0, "a", ModeKeys.TRAIN, "x", "y"),
    file(0, "b", ModeKeys.TRAIN, "x"),
    file(3, "a", ModeKeys.EVAL, "y"),
    file(2, "b", ModeKeys.EVAL, "x", "z"),
    file(5, "a", ModeKeys.GLOBAL, "x", "y"),
]


def test_steps_are_filed_alike_in_every_order_of_arrival() -> None:
    for order in itertools.permutations(FILES):
        saved = SavedSteps()
        counts = [saved.add(one) for one in order]
        assert sorted(counts) == [1, 1, 1, 1, 2]
        assert saved.steps == [0, 2, 3, 5]
        assert saved.names == {"x": [0, 2, 5], "y": [0, 3, 5], "z": [2]}
        assert saved.names_by_mode == {
            ModeKeys.TRAIN: {"x": [0], "y": [0]},
            ModeKeys.EVAL: {"x": [2], "y": [3], "z": [2]},
            ModeKeys.GLOBAL: {"x": [5], "y": [5]},
        }
        assert saved.mode_steps == {ModeKeys.TRAIN: {0: 0}, ModeKeys.EVAL: {1: 2}}
        assert {step: sorted(workers) for step, workers in saved.files.items()} == {
            0: ["a", "b"],
            2: ["b"],
            3: ["a"],
            5: ["a"],
        }


@given(st.lists(st.tuples(st.integers(0, 8), st.sampled_from("ab"), st.sampled_from("xyz"))))
def test_the_steps_of_a_tensor_are_those_of_its_files(
    found: list[tuple[int, str, str]],
) -> None:
    saved = SavedSteps()
    expected: dict[str, set[int]] = {}
    for step, worker, name in found:
        saved.add(file(step, worker, ModeKeys.TRAIN, name))
        expected.setdefault(name, set()).add(step)
    assert saved.names == {name: sorted(steps) for name, steps in expected.items()}
    assert saved.steps == sorted({step for step, _, _ in found})
