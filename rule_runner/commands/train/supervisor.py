"""Supervisor: runs a training script and, beside it, an evaluation of each of its trainings."""

import asyncio
import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace as with_fields

from rule_core.exceptions import SMDebugError
from rule_core.failures import Contained, OnError
from rule_core.format.paths import END_OF_JOB
from rule_core.saving.auto_hook import HOOK, numbered_path
from rule_core.severity import Severity
from rule_core.storage.uri import open_output
from rule_runner.commands.evaluate import document
from rule_runner.commands.train.evaluator import Evaluator, EvaluatorResult, short
from rule_runner.commands.train.judged_recording import JudgedRecording
from rule_runner.commands.train.script import (
    ForwardedSignals,
    TrainingScript,
    say,
    unseen,
    write_hook,
)
from rule_runner.config.defaults import RuleMode
from rule_runner.config.model import EvaluationConfig
from rule_runner.config.request import EvaluationRequest
from rule_runner.errors import EXIT_ISSUES, OutputError
from rule_runner.logs import get_logger
from rule_runner.notify.event import RuleState
from rule_runner.results.durable_files import output_errors
from rule_runner.results.schema import summary

LEAST_EVALUATORS: Final = 2  # at a time, even with one processor
REQUEST: Final = "request.json"
PRINTED: Final = 3  # trainings whose verdicts are all printed
UNREMARKABLE: Final = frozenset({"NoIssuesFound", "NotEvaluated"})
_log: Final = get_logger(__name__)
HOOK_FILE: Final = "SMDEBUG_CONFIG_FILE_PATH"


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """The script to run, and how to save and evaluate its tensors.

    Attributes
    ----------
    name
        Name of the trial in results, reports and events.
    command
        The program and the script.
    hook
        The hook's JSON object.
    trial
        Folder of the first training's trial; the script's own hooks may save elsewhere.
    request
        The evaluation of the first training.
    evaluation
        The same, resolved.
    stop_on_finding
        Whether a finding of a rule in mode enforce ends the script: an error, or a warning if
        `EvaluationConfig.stop_on` says so.
    grace
        Seconds between SIGTERM and SIGKILL.
    """

    name: str
    command: tuple[str, ...]
    hook: Mapping[str, Any]
    trial: Path
    request: EvaluationRequest
    evaluation: EvaluationConfig
    stop_on_finding: bool
    grace: float


@dataclass(frozen=True, slots=True)
class WatchedTraining:
    """A training of the script.

    Attributes
    ----------
    number
        Counted from 1, as in the names of its folders.
    judging
        The task that runs the evaluator.
    """

    number: int
    evaluator: Evaluator
    judging: "asyncio.Task[EvaluatorResult]"


class Supervisor:
    """Runs the script and, from the first step of each training, an evaluation of it.

    Parameters
    ----------
    config
        What to run.
    control
        A folder for messages between this process and the script.
    recording
        The profile to record; None: none.
    """

    def __init__(
        self, config: TrainConfig, control: Path, recording: JudgedRecording | None = None
    ) -> None:
        self._config = config
        self._control = control
        self._recording = recording
        self._script: TrainingScript | None = None
        self._trainings: dict[str, WatchedTraining] = {}  # by trial
        self._turns = asyncio.Semaphore(max(LEAST_EVALUATORS, os.cpu_count() or 1))
        self._stopping: asyncio.Task[None] | None = None
        self._has_failed = False

    async def run(self) -> int:
        """Return the exit code: the script's, or 10 if findings decide it."""
        write_hook(self._control, self._config.hook)
        signals = ForwardedSignals(self._stop_evaluators)
        # A script that reads the hook's JSON file itself, as on SageMaker, gets the same file.
        variables = {HOOK_FILE: os.environ.get(HOOK_FILE, str(self._control / HOOK))}
        recording = self._recording
        if recording is not None:
            variables |= recording.start(partial(self._on_finding, 1))
        with OnError(self._end_recording):
            script = await TrainingScript.start(
                self._config.command, self._control, self._on_trial, variables
            )
        self._script = signals.script = script
        # An internal error does not hide the exit code.
        with closing(script), Contained(lambda _: _log.exception("training_not_judged")):
            await signals.wait(script, self._config.grace)
            self._end_recording()
            if self._stopping is not None:
                await self._stopping
            await self._conclude(script)
        if self._stopping is not None or (self._has_failed and not script.exit_code):
            return EXIT_ISSUES
        return script.exit_code

    def _on_trial(self, trial: str) -> None:
        """Start the evaluation of a training, once."""
        if trial in self._trainings:
            return
        config, number = self._config, self._number(trial)
        output = numbered_path(config.evaluation.output, number)
        name = numbered_path(config.name, number)
        request = with_fields(config.request, trial=trial, output=output, trial_name=name)
        rules = [rule.configuration_name for rule in config.evaluation.rules]
        evaluator = Evaluator(request, rules, partial(self._on_finding, number))
        judging = asyncio.create_task(self._judge(evaluator))
        self._trainings[trial] = WatchedTraining(number, evaluator, judging)

    def _number(self, trial: str) -> int:
        """Return the number in a training's folder name, or else a free one."""
        suffix = trial.removeprefix(f"{self._config.trial}-")
        number = int(suffix) if suffix != trial and suffix.isdecimal() else 1
        used = {training.number for training in self._trainings.values()}
        while number in used:
            number += 1
        return number

    async def _judge(self, evaluator: Evaluator) -> EvaluatorResult:
        async with self._turns:
            judged = await evaluator.run()
        if judged.problem and self._script is not None and self._script.runs:
            say(f"{judged.problem} The training goes on.")
        return judged

    def _on_finding(self, number: int, rule: RuleState) -> None:
        """Print that a rule has found an issue, and stop the script if the options say so."""
        script = self._script
        if script is None or not script.runs or self._stopping is not None:
            return
        issue = "a warning" if rule.severity is Severity.WARNING else "an issue"
        issue += f" in training {number}" * (number > 1)
        name = rule.configuration_name
        sentences = " ".join(filter(None, (rule.summary, rule.advice)))
        severity, needed = rule.severity or Severity.ERROR, self._config.evaluation.stop_on
        may_stop = self._config.stop_on_finding and rule.mode == RuleMode.ENFORCE
        if may_stop and severity.rank >= needed.rank:
            say(f"{name} has found {issue}: the training is stopped. {sentences}".rstrip())
            self._stopping = asyncio.create_task(script.stop(self._config.grace))
        else:
            why = f", because --stop-on is {needed}" * may_stop
            say(f"{name} has found {issue}; the training goes on{why}. {sentences}".rstrip())

    def _stop_evaluators(self) -> None:
        for training in self._trainings.values():
            training.evaluator.stop()
        if self._recording is not None:
            self._recording.stop()

    def _end_recording(self) -> None:
        if self._recording is not None:
            self._recording.end()

    async def _conclude(self, script: TrainingScript) -> None:
        """Wait for the evaluations, and print their results."""
        stopped = "" if self._stopping is None else "was stopped, and "
        say(f"The training {stopped}ended with exit code {script.exit_code}.")
        if not self._trainings:
            reason = unseen(script.frameworks)
            say(f"The script has saved nothing, so nothing was judged. {reason}")
        for trial in self._trainings:
            with suppress(OSError, SMDebugError):  # its script may have been killed before it could
                open_output(trial).open(END_OF_JOB).publish()
        judged: list[tuple[int, EvaluatorResult]] = []
        for training in sorted(self._trainings.values(), key=attrgetter("number")):
            judged.append((training.number, await training.judging))
            self._show(*judged[-1])
        self._has_failed = self._fails([result for _, result in judged])
        if len(judged) > 1:
            say(summed_up(judged))
        for text in script.missed:
            say(f"NotEvaluated: {text}")
        if self._recording is not None:
            await self._conclude_recording(self._recording, script)

    async def _conclude_recording(self, recording: JudgedRecording, script: TrainingScript) -> None:
        """Wait for the evaluation of the profile, and print its results."""
        judged = await recording.judged()
        if len(judged.rules) > 1:
            judged.show()
        self._say_problem(judged)
        recording.show(script.frameworks)
        self._has_failed = self._has_failed or self._fails([judged])

    def _show(self, number: int, judged: EvaluatorResult) -> None:
        """Print the verdicts on a training; of many, one without findings gets a single line."""
        if len(self._trainings) > 1:
            verdicts = summary(judged.rules, judged.saved.left_out) or "no verdicts"
            say(f"Training {number}: {verdicts}, in {short(judged.output)}")
        outcomes = {rule.outcome for rule in judged.rules}
        request = self._config.request
        if request.format != "table":
            loaded = [rule.loaded for rule in self._config.evaluation.rules]
            code = EXIT_ISSUES if self._fails([judged]) else 0
            text = document(judged.result, request.format, loaded, code, request.fails_on)
            print(text, flush=True)
        elif len(self._trainings) <= PRINTED or not outcomes <= UNREMARKABLE:
            judged.show()
        self._say_problem(judged)

    def _say_problem(self, judged: EvaluatorResult) -> None:
        if judged.problem:
            say(f"{judged.problem} The training was not touched.{self._retry(judged)}")

    def _fails(self, evaluations: Sequence[EvaluatorResult]) -> bool:
        """Return whether findings decide the exit code."""
        severity = self._config.request.fails_on
        return severity is not None and any(judged.has_issues(severity) for judged in evaluations)

    @staticmethod
    def _retry(judged: EvaluatorResult) -> str:
        """Save the request of an evaluation, and return how to repeat it."""
        file = judged.output / REQUEST
        try:
            with output_errors(file):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch(0o600)  # sinks may be secret
                file.write_text(with_fields(judged.request, output=None).to_json(), "utf-8")
        except OutputError as err:
            return f" {err}"
        command = ["rule-runner", "evaluate", "--request", str(short(file)), "--output", "DIR"]
        return f" Judge it with: {shlex.join(command)}"


def summed_up(trainings: Sequence[tuple[int, EvaluatorResult]]) -> str:
    """Return a sentence that sums up several trainings."""
    outcomes = {
        number: {rule.outcome for rule in judged.rules} | ({"Error"} if judged.problem else set())
        for number, judged in trainings
    }
    parts = [
        f"{outcome} in {', '.join(map(str, numbers))}"
        for outcome in ("IssuesFound", "Error", "NotEvaluated")
        if (numbers := [number for number, results in outcomes.items() if outcome in results])
    ]
    return f"Judged {len(trainings)} trainings: {'; '.join(parts) or 'no issues in any'}."
