"""RowSteps: counters, pairs of an epoch and a counter that restarts, and rows without any."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rule_core.sources.rows.row_steps import (
    COUNTERS,
    NO_COUNTER,
    Count,
    RowSteps,
    counter_rank,
    to_count,
)


def steps(*rows: dict[str, object], evaluations: frozenset[int] = frozenset()) -> list[int]:
    """Return the steps of rows, each given by its counters; `evaluations` are places of rows."""
    axis = RowSteps()
    return [
        axis.step_of(
            [count for name, value in row.items() if (count := to_count(name, value)) is not None],
            is_training=place not in evaluations,
        )
        for place, row in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([{"step": 10}, {"step": 20}], [10, 20], id="one counter"),
        pytest.param([{}, {}, {}], [0, 1, 2], id="no counter"),
        pytest.param([{"epoch": 0.1}, {"epoch": 0.5}, {"epoch": 1.0}], [0, 1, 2], id="fractions"),
        pytest.param([{"epoch": 1}, {"epoch": 2}], [1, 2], id="epochs"),
        pytest.param(
            [{"epoch": 3, "batch": "5/10"}, {"epoch": 4, "batch": "5/10"}],
            [25, 35],
            id="a run that goes on",
        ),
        pytest.param([{"Epoca": 3}, {"Epoca": 5}], [3, 5], id="epochs in Catalan"),
        pytest.param(
            [{"episode": 0, "steps": 17}, {"episode": 1, "steps": 12}, {"episode": 2}],
            [0, 1, 2],
            id="the steps of an episode are its length",
        ),
        pytest.param(
            [{"episodes": 1, "steps": 17}, {"episodes": 2, "steps": 29}],
            [17, 29],
            id="the steps of all episodes",
        ),
        pytest.param(
            [{"episode": 1, "step": 17}, {"episode": 2, "step": 29}], [17, 29], id="a step"
        ),
        pytest.param(
            [{"epoch": 1, "iter": 50}, {"epoch": 1, "iter": 100}, {"epoch": 2, "iter": 50}],
            [50, 100, 150],
            id="the largest count is the length of an epoch",
        ),
        pytest.param(
            [
                {"epoch": 1, "iter": "50/124"},
                {"epoch": 1, "iter": "100/124"},
                {"epoch": 2, "iter": "50/124"},
            ],
            [50, 100, 174],
            id="the total is the length of an epoch",
        ),
        pytest.param(
            [{"epoch": 0, "batch": 0}, {"epoch": 0, "batch": 1}, {"epoch": 1, "batch": 0}],
            [0, 1, 2],
            id="counts from 0",
        ),
        pytest.param(
            [{"epoch": 1, "step": 5}, {"epoch": 2, "step": 5}], [5, 10], id="one row an epoch"
        ),
        pytest.param(
            [{"epoch": 1, "iter": 10}, {"epoch": 2, "iter": 20}], [10, 20], id="a count of the run"
        ),
        pytest.param([{"step": 3}, {"step": 4}, {"step": 1}], [3, 4, 1], id="begun anew"),
        pytest.param(
            [
                {"epoch": 1, "iter": "5/10"},
                {"epoch": 2, "iter": "5/10"},
                {"epoch": 3, "iter": "5/10"},
                {"epoch": 2, "iter": "5/10"},
            ],
            [5, 15, 25, 15],
            id="resumed at an earlier epoch",
        ),
        pytest.param(
            [{"epoch": e, "batch": b} for last in (8, 3) for e in (1, 2) for b in (1, last)],
            [1, 8, 9, 16, 1, 3, 4, 6],
            id="another run with shorter epochs",
        ),
        pytest.param([{"step": 8, "epoch": 1}, {"epoch": 1}], [8, 8], id="the epoch alone follows"),
        pytest.param([{"step": 0, "iter": 1}, {"step": 0, "iter": 2}], [1, 2], id="accumulated"),
        pytest.param(
            [{"step": 990}, {"step": "1e+03"}, {"step": "1.01e+03"}, {"step": "1.01e+03"}],
            [990, 1000, 1010, 1010],
            id="an interval that does not fit the rounding",
        ),
        pytest.param(
            [{"step": 600}, {"step": 800}, {"step": "1K"}, {"step": "1K"}, {"step": "1K"}],
            [600, 800, 1000, 1200, 1400],
            id="rounded to thousands",
        ),
        pytest.param(
            [{"batch": "5/9"}, {"batch": "9/9"}, {"batch": "5/9"}], [5, 9, 14], id="bars alone"
        ),
        pytest.param([{"epoch": float("nan")}, {"epoch": -1}], [0, 1], id="no counts"),
    ],
)
def test_steps(rows: list[dict[str, object]], expected: list[int]) -> None:
    assert steps(*rows) == expected


def test_an_evaluation_follows_the_training() -> None:
    rows: list[dict[str, object]] = [{"step": 10}, {}, {"step": 20}, {}]
    assert steps(*rows, evaluations=frozenset((1, 3))) == [10, 10, 20, 20]


def test_an_evaluation_after_the_last_batch_is_at_the_end_of_the_epoch() -> None:
    rows: list[dict[str, object]] = [
        {"epoch": 1, "batch": "0/95"},
        {"epoch": 1, "batch": "50/95"},
        {},
        {"epoch": 2, "batch": "0/95"},
    ]
    assert steps(*rows, evaluations=frozenset((2,))) == [0, 50, 95, 95]


def test_the_decision_names_the_counters() -> None:
    axis = RowSteps()
    assert not axis.decisions()
    for epoch in (1, 2):
        for batch in (1, 2, 3):
            axis.step_of(
                [
                    Count("epoch", counter_rank("epoch"), epoch),
                    Count("batch", counter_rank("batch"), batch),
                ]
            )
    assert axis.decisions() == ["steps: epoch x 3 + 'batch', which restarts in each epoch"]


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["epoch", "iter", "step", "loss"]),
            st.floats() | st.integers() | st.text(),
        )
    )
)
def test_any_row_has_a_step(rows: list[dict[str, object]]) -> None:
    for step in steps(*rows):
        assert step >= 0


def test_every_counter_has_a_rank() -> None:
    names = [name for _, row in COUNTERS for name in row.split(", ")]
    assert len(set(names)) == len(names)
    assert all(counter_rank(name) < NO_COUNTER for name in names)
    assert counter_rank("Trainer/Global Step") == counter_rank("global_step")
    assert counter_rank("step_time") == NO_COUNTER
