"""The table of states, and the outcome of a trial."""

import pytest

from rule_runner.index.states import (
    RESTARTS,
    TRANSITIONS,
    TrialInput,
    WatchState,
    advance_trial,
    after_death,
    trial_outcome,
)


def test_every_state_has_a_row_and_is_reached() -> None:
    assert {state for state, _ in TRANSITIONS} == set(WatchState)
    assert {*TRANSITIONS.values(), WatchState.DISCOVERED} == set(WatchState)


def test_a_trial_that_is_lost_three_times_is_given_up_at_the_fourth() -> None:
    state, restarts, states = WatchState.QUEUED, 0, []
    while state is not WatchState.JUDGED:
        state = advance_trial(advance_trial(state, TrialInput.STARTED), TrialInput.DIED)
        step = after_death(restarts)
        restarts += step is TrialInput.RESTARTED
        state = advance_trial(state, step)
        states.append(str(state))
    assert states == ["queued"] * RESTARTS + ["judged"]


def test_an_impossible_input_is_a_defect() -> None:
    with pytest.raises(ValueError, match="A trial that is judged cannot take input STARTED"):
        advance_trial(WatchState.JUDGED, TrialInput.STARTED)


@pytest.mark.parametrize(
    ("outcomes", "named", "fitting"),
    [
        (["NoIssuesFound", "IssuesFound", "Error"], "IssuesFound", "IssuesFound"),
        (["NoIssuesFound", "Stopped", "Error"], "Error", "Error"),
        (["NotEvaluated", "NoIssuesFound"], "NotEvaluated", "NoIssuesFound"),
        (["NotEvaluated"], "NotEvaluated", "NotEvaluated"),
        ([], "NotEvaluated", "NotEvaluated"),
    ],
)
def test_silence_never_reads_as_health(outcomes: list[str], named: str, fitting: str) -> None:
    assert trial_outcome(outcomes, lenient=False) == named
    assert trial_outcome(outcomes, lenient=True) == fitting
