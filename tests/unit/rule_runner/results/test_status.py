"""Status: the table, the final words, the texts of the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rule_runner.results.status import (
    TRANSITIONS,
    Outcome,
    RuleStatus,
    StatusInput,
    advance,
    condition_text,
    message_bytes,
    wire_details,
)

FINAL = {
    RuleStatus.NO_ISSUES_FOUND,
    RuleStatus.ISSUES_FOUND,
    RuleStatus.ERROR,
    RuleStatus.STOPPED,
}


def test_the_words_are_those_of_the_wire() -> None:
    words = ["InProgress", "NoIssuesFound", "IssuesFound", "Error", "Stopping", "Stopped"]
    assert words == [str(status) for status in RuleStatus]
    assert [*words, "NotEvaluated"] == [str(outcome) for outcome in Outcome]


def test_a_status_that_is_not_final_answers_everything_that_happens() -> None:
    for status in RuleStatus:
        assert (set() if status in FINAL else set(StatusInput)) == set(TRANSITIONS[status])


@pytest.mark.parametrize(
    ("happened", "in_progress", "stopping"),
    [
        (StatusInput.CONDITION_MET, "IssuesFound", "IssuesFound"),
        (StatusInput.TRIAL_ENDED, "NoIssuesFound", "NoIssuesFound"),
        (StatusInput.DRAINED, "NoIssuesFound", "Stopped"),
        (StatusInput.NOTHING_JUDGED, "Error", "Stopped"),
        (StatusInput.RULE_FAILED, "Error", "Error"),
        (StatusInput.STOP_REQUESTED, "Stopping", "Stopping"),
    ],
)
def test_what_moves_a_status(happened: StatusInput, in_progress: str, stopping: str) -> None:
    assert in_progress == advance(RuleStatus.IN_PROGRESS, happened)
    assert stopping == advance(RuleStatus.STOPPING, happened)


@given(st.lists(st.sampled_from(StatusInput)))
def test_a_final_status_absorbs_all_that_comes_after(happened: list[StatusInput]) -> None:
    status = RuleStatus.IN_PROGRESS
    verdict = None
    for each in happened:
        status = advance(status, each)
        if verdict is None and status in FINAL:
            verdict = status
        assert verdict in {None, status}
        assert (status in FINAL) == status.final


def test_the_text_of_a_condition_met_is_the_contracts() -> None:
    expected = (
        "RuleEvaluationConditionMet: Evaluation of the rule LossNotDecreasing at step 500 "
        "resulted in the condition being met\n"
    )
    assert expected == condition_text("LossNotDecreasing", 500)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("ClientError: x.", "ClientError: x.", id="short"),
        pytest.param("é" * 2000, "é" * 1024, id="cut-on-characters"),
        pytest.param("C: " + "x" * 2000 + "\n", "C: " + "x" * 1020 + "\n", id="newline-kept"),
        pytest.param("a\x1b[31m\x00b", "a\\x1b[31m\\x00b", id="terminal-escape"),
        pytest.param("a\u202eb\u009bc", "a\\u202eb\\x9bc", id="direction-and-c1"),
        pytest.param("a\ud800b", "a\\ud800b", id="lone-surrogate"),
        pytest.param("a\n\tb", "a\n\tb", id="lines-stay"),
        pytest.param("", "", id="empty"),
    ],
)
def test_details_fit_the_wire(text: str, expected: str) -> None:
    assert expected == wire_details(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("ClientError: x.", b"ClientError: x.", id="short"),
        pytest.param("x" + "é" * 800, b"x" + "é".encode() * 511, id="no-half-character"),
        pytest.param("€" * 1024 + "\n", "€".encode() * 341 + b"\n", id="newline-kept"),
        pytest.param("\ud800", b"\\ud800", id="lone-surrogate"),
    ],
)
def test_the_message_file_is_whole_utf8(text: str, expected: bytes) -> None:
    assert expected == message_bytes(text)


@given(st.text(st.characters()))
def test_any_text_makes_a_valid_message(text: str) -> None:
    message = message_bytes(text * 50)
    assert len(message) <= 1024
    assert message.decode().encode() == message
    assert len(wire_details(text * 50)) <= 1024
