"""Evaluator: judges a trial in a separate process; the training does not depend on it."""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from rule_core.processes import environment_with, input_file, module_command
from rule_core.severity import Severity
from rule_core.sources.address import address_of
from rule_runner.config.defaults import RuleMode
from rule_runner.config.request import STDIN, EvaluationRequest, RuleRequest
from rule_runner.escape import printable
from rule_runner.notify.event import DecodedEvent, RuleState
from rule_runner.report.text import print_results
from rule_runner.results.evaluations import SavedEvaluation, saved_evaluations
from rule_runner.results.file_names import REPORT
from rule_runner.results.issues.incidents import incident_records
from rule_runner.results.schema import EvaluationResult, RuleResult, summary_of_trial
from rule_runner.results.status import FindingState

_LINE_LIMIT: Final = 1 << 24  # bytes
# The supervisor ends the evaluator. If the supervisor is killed, the evaluator ends after a day
# without new files.
IDLE_S: Final = 86400.0
_NICENESS: Final = 5  # the training comes first


@dataclass(frozen=True, slots=True)
class EvaluatorResult:
    """The result of an evaluation.

    Attributes
    ----------
    rules
        The results of the rule jobs that have ended.
    problem
        How the evaluator ended if results are missing; "" otherwise.
    saved
        What the evaluation saved besides its rules.
    """

    request: EvaluationRequest
    rules: Sequence[RuleResult]
    problem: str = ""
    saved: SavedEvaluation = field(default_factory=lambda: SavedEvaluation(""))

    @property
    def output(self) -> Path:
        """The output folder."""
        return Path(self.request.output or "")

    @property
    def result(self) -> EvaluationResult:
        """The results as those of one evaluation."""
        address = address_of(self.request.any_trial)
        judged = summary_of_trial(address.name, self.request.any_trial, self.rules)
        trial = replace(self.saved.trials.get(address.canonical, judged), ended=True)
        return EvaluationResult(
            trial=trial,
            rules=[*self.rules],
            left_out=self.saved.left_out,
            incidents=incident_records(self.rules),
        )

    def has_issues(self, severity: Severity) -> bool:
        """Return whether a rule in mode enforce has found an issue that is so serious."""
        return any(
            rule.has_issues(severity) and rule.mode == RuleMode.ENFORCE for rule in self.rules
        )

    def show(self) -> None:
        """Print the verdicts and the paths of trial and results to stderr."""
        places = [f"Trial: {printable(displayed(self.request.any_trial))}"]
        if self.rules:
            places.append(f"Results: {printable(short(self.output))}")
        report = self.output / REPORT
        if report.exists():
            places.append(f"Report: {printable(short(report))}")
        print_results(self.result, places, sys.stderr, folded=self.request.fits_rules)


class Evaluator:
    """Runs `rule-runner evaluate` over a trial while the training job writes it.

    Parameters
    ----------
    request
        The evaluation; its trial need not exist yet.
    rules
        Names of the rules that ``auto`` means. The evaluation starts later, when fewer may fit: the
        trial of a short script has ended by then.
    on_finding
        Called with the state of each rule job whose issue holds: once, and again if a later one is
        more serious.
    """

    def __init__(
        self,
        request: EvaluationRequest,
        rules: Sequence[str],
        on_finding: Callable[[RuleState], None],
    ) -> None:
        self._request = request
        self._rules = rules
        self._on_finding = on_finding
        self._reported: dict[str, Severity] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._is_stopped = False

    async def run(self) -> EvaluatorResult:
        """Evaluate until the trial ends, and return the result."""
        if self._is_stopped:
            return EvaluatorResult(self._request, [], "The evaluator was stopped.")
        request = self._request.with_baseline()
        rules = request.rules
        if request.fits_rules:
            rules = tuple(RuleRequest(name=name) for name in self._rules)
        request = replace(
            request,
            rules=rules,
            sinks=(*request.sinks, "stdout"),
            format="table",
            quiet=True,
            wait_for_trial=IDLE_S,
            idle_timeout=IDLE_S,
        )
        with input_file(request.to_json().encode()) as text:
            process = await asyncio.create_subprocess_exec(
                *module_command("rule_runner", "evaluate", "--request", STDIN),
                stdin=text,
                stdout=asyncio.subprocess.PIPE,
                env=environment_with(),
                limit=_LINE_LIMIT,
                # Signals of the terminal are for the training; the evaluation judges what it saved.
                start_new_session=True,
            )
        self._process = process
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
        if process.stdout is not None:
            async for line in process.stdout:
                self._report(line)
        return self._result(await process.wait())

    def stop(self) -> None:
        """Stop the evaluator early, or keep it from starting; it writes its results so far."""
        self._is_stopped = True
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.terminate()

    def _report(self, line: bytes) -> None:
        """Report the new findings in an event that the evaluation printed."""
        with suppress(msgspec.DecodeError):
            event = msgspec.json.decode(line, type=DecodedEvent)
            for rule in event.detail.states():
                name = rule.configuration_name
                reported = self._reported.get(name, Severity.NOTE)
                is_open = rule.finding_state is not FindingState.RECOVERED
                if is_open and rule.severity is not None and rule.severity.rank > reported.rank:
                    self._reported[name] = rule.severity
                    self._on_finding(rule)

    def _result(self, code: int) -> EvaluatorResult:
        saved = next(saved_evaluations(self._request.output or "", depth=0), SavedEvaluation(""))
        problem = ""
        if not saved.rules or saved.unfinished:
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            problem = f"The evaluator {how} before all verdicts."
        ended = [rule for rule in saved.rules if rule.ended_at is not None]
        return EvaluatorResult(self._request, ended, problem, saved)


def short(path: Path) -> Path:
    """Return a path as seen from the working folder, if it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def displayed(trial: str) -> str:
    """Return the path of a trial as seen from the working folder, or its address."""
    address = address_of(trial)
    path = address.path
    return str(address if "://" in path else address._replace(path=str(short(Path(path)))))
