"""Controllers and evaluations that are killed at random: nothing is lost or told twice."""

import json
import math
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import fleets
import http_places
import pytest
import vanishing
import yaml

from rule_core.clock import SystemClock
from rule_runner.index.leases import holder
from rule_runner.index.reader import IndexReader
from rule_runner.index.states import RESTARTS
from smdebug.core.locations import END_OF_JOB

ROOT = Path(__file__).parents[3]
SUPPORT = ROOT / "tests" / "support"
PATIENCE_S = 120.0
STARTED = ("InProgress", "InProgress", "InProgress")
FOUND = (("Completed", "IssuesFound", "InProgress"), ("Completed", "IssuesFound", "NoIssuesFound"))
TOLD = {  # as without a kill, for trials that end before and after the issue is found
    (STARTED, ("Completed", "InProgress", "InProgress"), *FOUND),
    (STARTED, ("InProgress", "IssuesFound", "InProgress"), *FOUND),
}
RULES = ["VanishingGradient", "LossNotDecreasing"]
JUDGE = {"rules": RULES}


def end_of(trial: Path) -> Path:
    """Return the file that says that a trial has ended."""
    return trial / END_OF_JOB


class Place:
    """A folder with trials that go on and a configuration, and the controller over them."""

    def __init__(
        self, folder: Path, trials: int, alerts: str, judge: Mapping[str, Any] = JUDGE
    ) -> None:
        self.folder = folder
        self.out = folder / "out"
        config = {
            "roots": ["runs"],
            "judge": [judge],
            "output": "out/{trial}",
            "sinks": [f"file:{folder / 'told.jsonl'}"],
            "max_concurrent": 2,
            "alerts": {"sinks": [alerts], "most_per_hour": trials // 2, "digest_every": "1s"},
        }
        (folder / "fleet.yaml").write_text(yaml.safe_dump(config))
        self.controller = self.start()

    def start(self) -> "subprocess.Popen[bytes]":
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, str(SUPPORT / "watch_program.py"), "fleet.yaml"],
                cwd=self.folder,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdout=log,
                stderr=log,
            )

    def end_trial(self, number: int) -> None:
        end_of(self.folder / "runs" / f"{number:02}").touch()

    def evaluations(self) -> dict[Path, int]:
        """Return the running evaluations by their leases."""
        leases = (self.out / "watch.sqlite-evaluations").glob("*.lock")
        return {lease: pid for lease in leases if (pid := holder(lease)) is not None}

    def told(self) -> list[Any]:
        lines = (self.folder / "told.jsonl").read_text().splitlines()
        return [json.loads(line)["detail"] for line in lines]


def news(details: list[Any]) -> dict[str, list[tuple[str, ...]]]:
    """Return the statuses of each trial's rules in order, each event once."""
    statuses: dict[str, dict[str, tuple[str, ...]]] = {}
    for detail in details:
        rules = tuple(
            rule["RuleEvaluationStatus"] for rule in detail["DebugRuleEvaluationStatuses"]
        )
        trial = statuses.setdefault(detail["TrainingJobName"], {})
        trial.setdefault(detail["EventKey"], (detail["TrainingJobStatus"], *rules))
    return {trial: [*events.values()] for trial, events in statuses.items()}


def alerted(messages: list[http_places.Request]) -> dict[str, int]:
    """Return how often people were told of each trial, each message once."""
    bodies = {message.headers["Idempotency-Key"]: message.body for message in messages}
    texts = [" ".join(map(str, json.loads(body).values())) for body in bodies.values()]
    return Counter(name for text in texts for name in re.findall(r"(\d\d): Vanishing", text))


@pytest.fixture
def people() -> Iterator[http_places.Place]:
    with http_places.serving() as place:
        yield place


@pytest.mark.parametrize(
    ("kills", "trials"),
    [(2, 6), pytest.param(50, 60, marks=pytest.mark.nightly)],
)
def test_kill_9_at_random(
    tmp_path: Path, people: http_places.Place, kills: int, trials: int
) -> None:
    draw = random.Random(kills)
    clock = SystemClock()
    for number in range(trials):
        end_of(vanishing.write_trial(tmp_path / "runs" / f"{number:02}")).unlink()
    place = Place(tmp_path, trials, people.url.replace("http:", "apprise:json:"))
    deaths: dict[Path, int] = {}
    controllers = done = 0
    deadline = clock.monotonic() + PATIENCE_S + 10.0 * kills
    while done < kills and clock.monotonic() < deadline:
        clock.sleep(draw.uniform(0.2, 1.5))
        running = place.evaluations()
        targets = [lease for lease in running if deaths.get(lease, 0) < RESTARTS]
        if not running:
            continue
        if done % 2 and targets:
            lease = draw.choice(targets)
            with suppress(ProcessLookupError):
                os.kill(running[lease], signal.SIGKILL)
            deaths[lease] = deaths.get(lease, 0) + 1
        else:
            place.controller.kill()
            place.controller.wait()
            place.controller = place.start()
            controllers += 1
        place.end_trial(done)
        done += 1
    for number in range(done, trials):
        place.end_trial(number)
    assert (done, controllers > 0, bool(deaths)) == (kills, True, True)
    with IndexReader(place.out / "watch.sqlite") as reader:
        fleets.wait_until(lambda: all(record.state == "judged" for record in reader.trials()))
        fleets.wait_until(lambda: len(alerted(people.requests)) == trials)
        place.controller.terminate()
        assert place.controller.wait(PATIENCE_S) == 143, (tmp_path / "log").read_text()
        records = reader.trials()
        assert [(record.state, record.outcome) for record in records] == [
            ("judged", "IssuesFound")
        ] * trials
        names = {rule.name for record in records for rule in reader.rules_of(record.id)}
    assert names == set(RULES)
    for record in records:
        for path in Path(record.output).rglob("events.jsonl"):
            events = [json.loads(line)["detail"] for line in path.read_text().splitlines()]
            keys = [event["EventKey"] for event in events]
            assert len(keys) == len(set(keys))
        findings = [*Path(record.output).rglob("findings.jsonl")]
        lines = [line for path in findings for line in path.read_text().splitlines()]
        assert len(lines) == 1
    told = news(place.told())
    assert len(told) == trials
    assert {tuple(events) for events in told.values()} <= TOLD
    assert alerted(people.requests) == {f"{number:02}": 1 for number in range(trials)}


def write_log(folder: Path, rows: int, *, recovers: bool) -> None:
    """Write a training whose loss jumps after 60 rows, to stay there or to come back."""
    draw = random.Random(rows)
    lines = ["step,loss"]
    for row in range(rows):
        is_high = row >= 60 and (row < 75 or not recovers)
        loss = 9.0 + row / 50 if is_high else 0.2 + 2.3 * math.exp(-row / 50)
        lines.append(f"{row},{loss + draw.gauss(0, 0.01):.4f}")
    folder.mkdir(parents=True)
    (folder / "log.csv").write_text("\n".join(lines) + "\n")


def titles(messages: list[http_places.Request]) -> list[str]:
    """Return the titles of the messages, each once."""
    bodies = {message.headers["Idempotency-Key"]: message.body for message in messages}
    return sorted(json.loads(body)["title"] for body in bodies.values())


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.nightly)])
def test_kill_9_tells_each_incident_and_its_end_once(
    tmp_path: Path, people: http_places.Place, kills: int
) -> None:
    def spike_titles() -> list[str]:
        return [title for title in titles(people.requests) if title.startswith("spike")]

    complete = (
        [],  # nobody looked before it was over
        ["spike: LossSpike found issues (warning)", "spike: LossSpike has recovered"],
    )
    draw = random.Random(kills)
    clock = SystemClock()
    write_log(tmp_path / "runs" / "broken", 200, recovers=False)
    write_log(tmp_path / "runs" / "spike", 400, recovers=True)
    alerts = people.url.replace("http:", "apprise:json:")
    place = Place(tmp_path, 20, alerts, {"rules": ["LossSpike", "LossNotDecreasing"]})
    deaths: Counter[Path] = Counter()
    done = 0
    while done < kills:
        fleets.wait_until(place.evaluations)
        clock.sleep(draw.uniform(0.2, 1.5))
        mortal = [pid for lease, pid in place.evaluations().items() if deaths[lease] < RESTARTS]
        victim = draw.choice([*mortal, place.controller.pid])
        deaths.update(lease for lease, pid in place.evaluations().items() if pid == victim)
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        if victim == place.controller.pid:
            place.controller.wait()
            place.controller = place.start()
        done += 1
    with IndexReader(place.out / "watch.sqlite") as reader:

        def verdicts() -> set[str]:
            rules = [rule for trial in reader.trials() for rule in reader.rules_of(trial.id)]
            return {f"{rule.name} {rule.verdict}" for rule in rules if rule.judged}

        fleets.wait_until(
            lambda: {"LossSpike Recovered", "LossNotDecreasing IssuesFound"} <= verdicts()
        )
    fleets.wait_until(lambda: any("broken" in title for title in titles(people.requests)))
    fleets.wait_until(lambda: spike_titles() in complete)
    place.controller.terminate()
    # A controller that has just started again has no handler yet.
    ends = {128 + signal.SIGTERM, -signal.SIGTERM}
    assert place.controller.wait(PATIENCE_S) in ends, (tmp_path / "log").read_text()
    found = Counter(title.partition(" found")[0] for title in titles(people.requests))
    assert [count for title, count in found.items() if title.startswith("broken")] == [1]
    assert spike_titles() in complete
