"""Evaluations without threads or sleeps: a clock that is wound, and a scripted waiter.

Trials are dictionaries of files; `revealed` lets a test hand the runner any store it likes.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import rawtrial
import structlog

from rule_core.sources.address import address_of
from rule_core.storage.base import TrialStore
from rule_runner.config.model import EvaluationConfig, RuleJobConfig
from rule_runner.config.request import EvaluationRequest
from rule_runner.config.resolve import options_of
from rule_runner.engine.runner import Runner
from rule_runner.loading.loader import LoadedRule, load_builtin
from smdebug.rules import Rule

END = rawtrial.TRAINING_JOB_END


class WoundClock:
    """Time passes by sleeping and by `now +=` only."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class ScriptedClock(WoundClock):
    """Takes one step of a script at each sleep."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        super().__init__()
        self.steps = list(steps)
        self.slept = 0.0

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.slept += seconds
        if self.steps:
            self.steps.pop(0)()


class Script:
    """Does one thing at each wait; at a wait after the last one, time passes."""

    def __init__(self, clock: WoundClock, steps: Sequence[Callable[[], object]] = ()) -> None:
        self.clock = clock
        self.steps = list(steps)
        self.waits: list[float] = []

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.now += min(seconds, 0.1)
        if self.steps:
            self.steps.pop(0)()
        else:
            self.clock.now += seconds


def custom(rule_class: type[Rule]) -> LoadedRule:
    """Return what the loader gives for a class of a user's file."""
    return LoadedRule(rule_class.__name__, rule_class, False, None, "0" * 64)


def rule_job(rule: type[Rule] | str, name: str | None = None, **more: Any) -> RuleJobConfig:
    """Return a rule job for a class, or for a built-in rule."""
    loaded = load_builtin(rule) if isinstance(rule, str) else custom(rule)
    return RuleJobConfig(name or loaded.name, loaded, **more)


def configured(
    output: Path, rules: Sequence[RuleJobConfig | type[Rule]], trial: str = "/trial", **more: Any
) -> EvaluationConfig:
    """Return an evaluation of some rules."""
    jobs = tuple(rule if isinstance(rule, RuleJobConfig) else rule_job(rule) for rule in rules)
    for name in {"profiler_trial"} & {*more}:
        more[name] = address_of(more[name])
    own = {name: more.pop(name) for name in EvaluationConfig.__slots__ if name in more}
    options = options_of(EvaluationRequest(trial=trial, **more))
    return EvaluationConfig(jobs, address_of(trial), output, **(options | own))


@contextmanager
def stores(found: TrialStore | Mapping[str, TrialStore]) -> Iterator[None]:
    """Let all trials, or trials by path, be read from these stores inside the block."""

    def store_of(path: str) -> TrialStore:
        return found[path] if isinstance(found, Mapping) else found

    with mock.patch("rule_runner.loading.trials.open_store", store_of):
        yield


def runner(
    config: EvaluationConfig,
    found: TrialStore | Mapping[str, TrialStore],
    script: Script | None = None,
    **more: Any,
) -> Runner:
    """Return a runner over stores; by default its waits only let time pass."""
    script = script or Script(WoundClock())
    with stores(found):
        return Runner(config, clock=script.clock, waiter=script, **more)


def trial(
    steps: Mapping[int, Mapping[str, Any]],
    patterns: Mapping[str, Sequence[str]] | None = None,
    *,
    ended: bool = True,
) -> dict[str, bytes]:
    """Return the files of a trial of one worker, from tensors by step."""
    files = {rawtrial.collections_key(): rawtrial.collections(patterns or {})}
    for step, values in steps.items():
        files |= rawtrial.step_files(step, values)
    return files | ({END: b""} if ended else {})


def json_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def log_nothing() -> None:
    """Drop what is logged, unless `structlog.testing.capture_logs` asks for it."""

    def drop(*_: object) -> structlog.typing.EventDict:
        raise structlog.DropEvent

    structlog.configure(processors=[drop])
