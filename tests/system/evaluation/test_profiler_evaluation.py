"""Evaluations over profiler data in memory: live and afterwards, alone and beside tensors."""

from pathlib import Path
from typing import Any

import evaluating
import numpy as np
import pytest
from evaluating import Script, WoundClock, configured, rule_job, runner
from faulty_store import LOCAL, REMOTE, CountingStore
from memory_store import MemoryStore
from profiler_writer import BEGIN_S, BEGIN_US, END, minute

from rule_runner.config.defaults import DEFAULT_SCAN_INTERVAL_US
from rule_runner.config.model import RuleJobConfig
from rule_runner.config.profiler_windows import (
    judges_windows,
    names_over,
    over_windows,
    placed,
)
from rule_runner.engine.runner import Runner
from rule_runner.errors import TrialError, UsageError
from rule_runner.loading.loader import load_builtin
from rule_runner.results.schema import RuleResult
from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.rules import Rule

MINUTES = (50.0, 50.0, 95.0, 95.0)


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


class Busy(Rule):
    """Met when a core is busy in a window; the window is the rule's own."""

    def __init__(
        self, base_trial: Any, limit: float = 90, scan_interval_us: int | str = 60_000_000
    ) -> None:
        super().__init__(base_trial)
        self.limit = limit
        self.length = int(scan_interval_us)
        self.begin = base_trial.first_timestamp
        assert self.begin == BEGIN_US

    def invoke_at_step(self, step: int) -> bool:
        raise NotImplementedError

    def invoke(self, step: int) -> None:
        start = self.begin + step * self.length
        self.base_trial.wait_for_data(start + self.length, start)
        if self.base_trial.system_samples(start, start + self.length).value.max() > self.limit:
            self.found(step)
            super().carry_out_actions(step)
            raise RuleEvaluationConditionMet(self.rule_name, step)


def minutes(*values: float) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for number, value in enumerate(values):
        found |= minute(number, cpu0=value, gpu0=1.0)
    return found


def windows(
    rule: type[Rule] | str = Busy, name: str | None = None, **parameters: str
) -> RuleJobConfig:
    """Return a rule job over profiler data."""
    return over_windows(rule_job(rule, name, parameters=parameters))


def seen(result: RuleResult) -> tuple[str, int | None, int]:
    return result.outcome, result.step, result.coverage.judged


def test_afterwards(tmp_path: Path) -> None:
    files = minutes(*MINUTES) | END
    config = configured(tmp_path, [windows(), windows("OverallSystemUsage")])
    found = runner(config, MemoryStore(files)).run().result
    assert list(map(seen, found.rules)) == [("IssuesFound", 2, 3), ("NoIssuesFound", None, 4)]
    assert (found.trial.steps, found.trial.ended, found.trial.workers) == (4, True, ["algo-1"])
    assert found.profiler_trial is None


def test_live_as_afterwards(tmp_path: Path) -> None:
    files: dict[str, bytes] = {}
    clock = WoundClock(BEGIN_S + 600.0)

    def bring(number: int) -> Any:
        return lambda: files.update(minute(number, cpu0=MINUTES[number], gpu0=1.0))

    script = Script(clock, [bring(0), bring(1), bring(2), bring(3), lambda: files.update(END)])
    config = configured(
        tmp_path, [windows(), windows("OverallSystemUsage")], wait_for_trial=float("inf")
    )
    found = runner(config, MemoryStore(files), script).run().result
    assert list(map(seen, found.rules)) == [("IssuesFound", 2, 3), ("NoIssuesFound", None, 4)]


def test_windows_of_several_lengths(tmp_path: Path) -> None:
    files = minutes(*MINUTES) | END
    long = windows(name="Long", scan_interval_us="120000000")
    short = windows(name="Short", scan_interval_us="30000000")
    assert (long.window_us, short.window_us) == (120_000_000, 30_000_000)
    found = runner(configured(tmp_path, [long, short]), MemoryStore(files)).run().result
    assert [seen(one)[:2] for one in found.rules] == [("IssuesFound", 1), ("IssuesFound", 4)]


def test_beside_tensors(tmp_path: Path) -> None:
    class Zero(Rule):
        def invoke_at_step(self, step: int) -> bool:
            return bool(self.base_trial.tensor("loss").value(step)[0] == 0)

    losses = {at: {"loss": np.full(1, 1 - at, "f4")} for at in range(3)}
    found = {
        "/tensors": MemoryStore(evaluating.trial(losses, {"losses": ["loss"]})),
        "/profile": MemoryStore(minutes(*MINUTES) | END),
    }
    config = configured(
        tmp_path, [rule_job(Zero), windows()], "/tensors", profiler_trial="/profile"
    )
    result = runner(config, found).run().result
    assert list(map(seen, result.rules)) == [("IssuesFound", 1, 2), ("IssuesFound", 2, 3)]
    assert [one.trial for one in result.rules] == ["/tensors", "/profile"]
    assert result.profiler_trial is not None
    assert (result.trial.path, result.profiler_trial.path) == ("/tensors", "/profile")


def test_no_wait_judges_what_is_settled(tmp_path: Path) -> None:
    config = configured(tmp_path, [windows("OverallSystemUsage")], wait=False)
    (found,) = runner(config, MemoryStore(minutes(*MINUTES))).run().result.rules
    assert (seen(found), found.trial_ended) == (("NoIssuesFound", None, 3), False)


def test_a_stop_signal_ends_the_data(tmp_path: Path) -> None:
    signal = tmp_path / "signal"
    signal.write_text(str(BEGIN_S))
    config = configured(
        tmp_path / "out",
        [windows("OverallSystemUsage")],
        profiler_stop_files=(signal,),
        stop_grace=1.0,
    )
    (found,) = runner(config, MemoryStore(minutes(*MINUTES))).run().result.rules
    assert (seen(found), found.trial_ended) == (("NoIssuesFound", None, 4), True)


def test_nothing_there(tmp_path: Path) -> None:
    config = configured(tmp_path, [windows()])
    (found,) = runner(config, MemoryStore(dict(END), "p0")).run().result.rules
    assert found.status_details == (
        "ClientError: No debugging data was saved by the training job. "
        "Trial '/trial' holds no profiler data in its folders 'system' and 'framework', and no "
        "trace of torch.profiler."
    )


@pytest.mark.parametrize(
    "files",
    [
        {"training_job_end.ts": b""},
        {"system/training_job_end.ts": b""},
        {"framework/training_job_end.ts": b""},
        evaluating.trial({0: {"loss": np.ones(1, "f4")}}),
    ],
    ids=["root", "system", "framework", "tensors"],
)
@pytest.mark.parametrize("remote", [False, True], ids=["local", "remote"])
def test_an_end_mark_without_metrics_is_not_waited_for(
    tmp_path: Path, files: dict[str, bytes], remote: bool
) -> None:
    store = CountingStore(MemoryStore(files, "p0"), REMOTE if remote else LOCAL)
    script = Script(WoundClock())
    (found,) = runner(configured(tmp_path, [windows()]), store, script).run().result.rules
    assert (found.outcome, found.trial_ended) == ("NotEvaluated", True)
    assert sum(script.waits) < 10
    assert "holds no profiler data" in (found.status_details or "")


def test_the_end_mark_of_tensors_ends_no_profiler_data(tmp_path: Path) -> None:
    files = minutes(*MINUTES[:2]) | {"training_job_end.ts": b""}
    script = Script(WoundClock(BEGIN_S + 600.0), [int] * 5)
    script.steps.append(lambda: files.update(minutes(*MINUTES) | END))
    (found,) = (
        runner(configured(tmp_path, [windows()]), MemoryStore(files), script).run().result.rules
    )
    assert seen(found) == ("IssuesFound", 2, 3)


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    trial = str(tmp_path / "none")
    config = configured(tmp_path / "out", [windows()], trial)
    with pytest.raises(TrialError, match=f"^Trial {trial!r} does not exist.$"):
        Runner(config)
    later = configured(tmp_path / "out", [windows()], trial, wait_for_trial=3.0)
    script = Script(WoundClock())
    (found,) = Runner(later, clock=script.clock, waiter=script).run().result.rules
    assert found.status_details == f"ClientError: Trial {trial!r} does not exist."


# -- rules with a clock of their own -----------------------------------------------------------


class OwnClock(Rule):
    """Moves its clock by `length`, whatever the runner's windows are, and never fires."""

    length = 20_000_000
    asked: list[tuple[int, int, int]]

    def __init__(self, base_trial: Any) -> None:
        super().__init__(base_trial)
        self.begin = self.at = base_trial.first_timestamp
        self.asked = type(self).asked

    def invoke_at_step(self, step: int) -> bool:
        raise NotImplementedError

    def invoke(self, step: int) -> None:
        del step
        end = self.at + self.length
        self.base_trial.wait_for_data(end, self.at)
        found = self.base_trial.system_samples(self.at, end)
        seconds = [(one - self.begin) // 1_000_000 for one in (self.at, end)]
        self.asked.append((seconds[0], seconds[1], len(found)))
        self.at = end


@pytest.mark.parametrize(
    ("length", "asked"),
    [
        (25, [(at, at + 25, 5) for at in range(0, 150, 25)]),
        (60, [(0, 60, 12), (60, 120, 12), (120, 180, 6)]),
        (100, [(0, 100, 20), (100, 200, 10)]),
    ],
)
@pytest.mark.parametrize("live", [False, True])
def test_a_rule_sees_all_whatever_its_clock(
    tmp_path: Path, length: int, asked: list[tuple[int, int, int]], live: bool
) -> None:
    class Mine(OwnClock):
        pass

    Mine.length, Mine.asked = length * 1_000_000, []
    files: dict[str, bytes] = {}
    bring = [
        lambda number=number: files.update(
            minute(number, every_s=5, seconds=30 if number == 2 else 60)
        )
        for number in range(3)
    ]
    bring.append(lambda: files.update(END))
    script = Script(WoundClock(BEGIN_S + 600.0), bring if live else ())
    if not live:
        for one in bring:
            one()
    config = configured(tmp_path, [over_windows(rule_job(Mine))], wait_for_trial=float("inf"))
    (found,) = runner(config, MemoryStore(files), script).run().result.rules
    assert Mine.asked[: len(asked)] == asked
    assert {one[2] for one in Mine.asked[len(asked) :]} <= {0}
    assert (found.outcome, found.coverage.known) == ("NoIssuesFound", 3)


# -- which rules, and how long their windows are ---------------------------------------------


def test_rules_are_placed_by_name_and_by_what_they_take() -> None:
    class Plain(Rule):
        def invoke_at_step(self, step: int) -> bool:
            raise NotImplementedError

    jobs = [rule_job(one) for one in ("AllZero", "BatchSize", Busy, Plain)]
    assert [one.profiler for one in placed(jobs, "/t", "/p")] == [False, True, True, False]
    assert [one.profiler for one in placed(jobs[1:], None, "/p")] == [True, True, True]
    assert [one.profiler for one in placed([jobs[0], *jobs[2:]], "/t", None)] == [False] * 3
    with pytest.raises(UsageError, match=r"^Rule 'BatchSize' judges profiler data: give --profil"):
        placed(jobs, "/t", None)
    with pytest.raises(UsageError, match=r"^Rule 'AllZero' judges tensors: give --trial PATH\.$"):
        placed(jobs, None, "/p")


@pytest.mark.parametrize(
    ("rule", "parameters", "length"),
    [
        ("BatchSize", {}, DEFAULT_SCAN_INTERVAL_US),
        ("BatchSize", {"scan_interval_us": "5000000"}, 5_000_000),
        ("BatchSize", {"scan_interval_us": "ten"}, DEFAULT_SCAN_INTERVAL_US),
        ("BatchSize", {"scan_interval_us": "0"}, DEFAULT_SCAN_INTERVAL_US),
        ("BatchSize", {"scan_interval_us": "7"}, 100_000),  # which the rule itself refuses
        (Busy, {}, 60_000_000),
    ],
)
def test_lengths_of_windows(rule: Any, parameters: dict[str, str], length: int) -> None:
    assert windows(rule, **parameters).window_us == length


def test_names() -> None:
    assert "AllZero" in names_over(tensors=True, windows=False)
    assert "BatchSize" not in names_over(tensors=True, windows=False)
    assert "BatchSize" in names_over(tensors=False, windows=True)
    assert judges_windows(load_builtin("batchsize"), otherwise=False)
    assert not judges_windows(load_builtin("AllZero"), otherwise=True)
