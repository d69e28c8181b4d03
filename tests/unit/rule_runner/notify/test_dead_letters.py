"""Events that a receiver refuses for good: set aside, counted, said, and sent again when asked."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import evaluating
import http_places
import numpy as np
import pytest
import rawtrial
import saved
from click.testing import CliRunner, Result
from http_places import Answer, Place, Request
from told import WAY, ListSink, news

from rule_runner.cli import main
from rule_runner.notify.dead_letters import DeadLetters
from rule_runner.notify.delivery import Delivery, drain
from rule_runner.notify.event import Event
from rule_runner.notify.outbox import Outbox
from rule_runner.notify.sinks import Refused, Sent
from rule_runner.results.cursors import Cursor
from rule_runner.results.file_names import DEAD_LETTERS

STEPS = {step: {"g": np.float32([1.0 if step < 3 else 1e-9])} for step in range(6)}
SECOND = 2  # EventSequence of the event that a receiver refuses


class Hook:
    """A webhook that answers one event as the test says, and remembers those that it takes."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.taken: list[int] = []
        self.tries = 0

    def answer(self, request: Request) -> Answer:
        sequence = json.loads(request.body)["data"]["EventSequence"]
        self.tries += sequence == SECOND
        if sequence == SECOND and self.status != 200:
            return Answer(self.status)
        self.taken.append(sequence)
        return Answer(200)


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    return rawtrial.write(tmp_path / "trial", evaluating.trial(STEPS, {"gradients": ["g"]}))


@pytest.fixture
def serve() -> Iterator[Callable[[Hook], Place]]:
    """Return what starts a webhook, for as long as the test runs."""
    with ExitStack() as stack:
        yield lambda hook: stack.enter_context(http_places.serving(hook.answer))


def evaluate(trial: Path, place: Place, *arguments: str) -> Result:
    output = ["--output", str(trial.parent / "out"), "--sink", f"webhook:{place.url}/x"]
    options = ["--trial", str(trial), "--rule", "VanishingGradient", *output, *arguments]
    return CliRunner().invoke(main, ["evaluate", *options])


def replay(trial: Path, place: Place, *arguments: str) -> Result:
    sink = ["--sink", f"webhook:{place.url}/x", *arguments]
    return CliRunner().invoke(main, ["events", "replay", str(trial.parent / "out"), *sink])


def letters(folder: Path) -> list[int]:
    """Return the sequence numbers of the events that were set aside."""
    path = folder / DEAD_LETTERS
    found: list[Any] = evaluating.json_lines(path) if path.exists() else []
    return [one["event"]["detail"]["EventSequence"] for one in found]


def said(result: Result) -> list[str]:
    return [line for line in result.stderr.splitlines() if not re.match("[0-9]{4}-", line)]  # a log


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_one_event_that_a_webhook_refuses_does_not_hold_back_later_ones(
    trial: Path, serve: Callable[[Hook], Place], status: int
) -> None:
    hook = Hook(status)
    place = serve(hook)
    result = evaluate(trial, place, "--format", "json")
    out = trial.parent / "out"
    assert (result.exit_code, hook.taken, hook.tries) == (0, [1, 3], 1)
    assert letters(out) == [SECOND]
    label = f"webhook:{place.url}/..."
    refusal = (
        f"Sink '{label}' refused 1 event for good, stored in 'dead-letters.jsonl': "
        f"Webhook {place.url}/... answered with status {status}."
    )
    again = f"Send them again with: rule-runner events replay '{out}' --sink '{label}' --refused."
    assert said(result)[-1] == f"{refusal} {again}"
    assert json.loads(result.stdout)["rules"][0]["notes"] == [refusal]
    assert saved.result(out)["notes"] == [refusal]


def test_refused_events_are_sent_again_when_asked(
    trial: Path, serve: Callable[[Hook], Place]
) -> None:
    hook = Hook(422)
    place = serve(hook)
    evaluate(trial, place)
    out = trial.parent / "out"
    assert replay(trial, place).exit_code == 0  # the cursor has passed it
    still = replay(trial, place, "--refused")
    assert (still.exit_code, letters(out), hook.taken) == (1, [SECOND], [1, 3])
    assert said(still)[-1].endswith("status 422.")
    hook.status = 200
    taken = replay(trial, place, "--refused")
    assert (taken.exit_code, letters(out), hook.taken) == (0, [], [1, 3, SECOND])
    assert said(taken)[-1] == f"Sink 'webhook:{place.url}/...' took 1 events."
    assert replay(trial, place, "--refused").exit_code == 0
    assert hook.taken == [1, 3, SECOND]
    assert replay(trial, place, "--refused", "--all").exit_code == 2


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again(
    trial: Path, serve: Callable[[Hook], Place], status: int
) -> None:
    class Passing(Hook):
        def answer(self, request: Request) -> Answer:
            if self.tries == 2:
                self.status = 200
            return super().answer(request)

    hook = Passing(status)
    result = evaluate(trial, serve(hook))
    assert (result.exit_code, said(result), hook.taken) == (0, [], [1, 2, 3])
    assert letters(trial.parent / "out") == []


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_holds_for_every_event_keeps_them_in_order_until_it_is_mended(
    trial: Path, serve: Callable[[Hook], Place], status: int
) -> None:
    hook = Hook(status)
    place = serve(hook)
    result = evaluate(trial, place)
    assert (result.exit_code, hook.taken, letters(trial.parent / "out")) == (0, [1], [])
    assert "did not take 2 events" in said(result)[-1]
    hook.status = 200
    assert replay(trial, place).exit_code == 0
    assert hook.taken == [1, 2, 3]


class Refusing(ListSink):
    """Refuses every event."""

    def send(self, events: Sequence[Event]) -> Sent:
        return Sent(len(events), tuple(Refused(str(one["id"]), "No.") for one in events))


def test_a_crash_between_setting_aside_and_the_cursor_leaves_one_letter(tmp_path: Path) -> None:
    with Outbox(tmp_path) as outbox:
        outbox.publish(news(WAY[0], outbox))
        for _ in range(2):
            drain([Delivery(outbox, Refusing())], 60)
            Cursor(tmp_path, "list").write(0)
    assert letters(tmp_path) == [1]


def test_an_event_that_cannot_be_set_aside_stays(tmp_path: Path) -> None:
    (tmp_path / DEAD_LETTERS).mkdir()
    with Outbox(tmp_path) as outbox:
        outbox.publish(news(WAY[0], outbox))
        (undelivered,) = drain([Delivery(outbox, Refusing())], 60)
    assert (undelivered.unsent, undelivered.refused) == (1, 0)
    assert "Cannot write" in undelivered.reason
    assert Cursor(tmp_path, "list").read() == 0


def test_letters_of_other_sinks_stay(tmp_path: Path) -> None:
    with Outbox(tmp_path) as outbox:
        event = news(WAY[0], outbox)
        outbox.publish(event)
        for name in ("a", "b"):
            outbox.dead_letters.add(name, [(event, "No.")])
        outbox.dead_letters.keep("a", ())
        assert [one.sink for one in DeadLetters(tmp_path).read()] == ["b"]
