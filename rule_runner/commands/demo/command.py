"""demo: three real trainings in separate processes, judged by four rules while they run."""

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TextIO

from rule_core.format.paths import END_OF_JOB
from rule_core.processes import end, start_module
from rule_runner.commands.evaluate import try_report
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.resolve import resolve
from rule_runner.engine.evaluate import evaluate
from rule_runner.engine.observer import Observer
from rule_runner.engine.outcome import EvaluationOutcome
from rule_runner.engine.stop_requests import Signals
from rule_runner.errors import EXIT_SIGNAL, ClientError, OutputError, restated
from rule_runner.escape import printable
from rule_runner.report.progress import LogObserver, observer
from rule_runner.report.text import print_results
from rule_runner.results.durable_files import output_errors
from rule_runner.results.schema import EvaluationResult
from rule_runner.steps.watcher import TrialWatcher

RULES: Final = ("VanishingGradient", "ExplodingTensor", "LossNotDecreasing", "AllZero")
# AllZero has no default collections; everything else has its default.
PARAMETERS: Final = ("AllZero.collection_names=activations,gradients",)
_IDLE_TIMEOUT_S: Final = 60.0  # a training that hangs
_LEAVE_S: Final = 20.0  # for a training whose rules are all done
_HEALTHY: Final = "NoIssuesFound"
_FOUND: Final = "IssuesFound"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One training: its description, its command line, and the expected verdicts."""

    name: str
    text: str
    arguments: tuple[str, ...]
    expected: Mapping[str, str]


SCENARIOS: Final = (
    Scenario(
        "healthy",
        "two relu layers, learning rate 0.1",
        ("--steps=150", "--pace=0.008"),
        dict.fromkeys(RULES, _HEALTHY),
    ),
    Scenario(
        "deep-sigmoid",
        "twelve sigmoid layers: what is left of the gradient does not reach the first ones",
        ("--hidden", *["24"] * 12, "--activation=sigmoid", "--steps=60", "--pace=0.008"),
        {"VanishingGradient": _FOUND},
    ),
    Scenario(
        "diverging",
        "four relu layers, learning rate 0.01 that grows by a tenth with each batch",
        (
            *("--hidden", "64", "64", "64", "64"),
            *("--learning-rate=0.01", "--growth=1.1", "--steps=100", "--pace=0.008"),
        ),
        {"ExplodingTensor": _FOUND},
    ),
)


class DemoTraining:
    """A training in another process; checked while rules wait for its files.

    Parameters
    ----------
    scenario
        The training to run.
    trial
        Folder of its trial.
    log
        Its error output.
    """

    def __init__(self, scenario: Scenario, trial: Path, log: IO[bytes]) -> None:
        self._name = scenario.name
        self._trial = trial
        self._log = log.name
        self._watcher = TrialWatcher([trial])
        self.process = start_module(
            "rule_runner.commands.demo.training",
            trial,
            *scenario.arguments,
            environ=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            stderr=log,
        )

    @property
    def runs(self) -> bool:
        """Whether the training has not ended."""
        return self.process.poll() is None and not (self._trial / END_OF_JOB).exists()

    def check(self) -> None:
        """Raise if the training has ended too early.

        Raises
        ------
        ClientError
            If it left no end mark.
        """
        code = self.process.poll()
        if code is None or (self._trial / END_OF_JOB).exists():
            return
        reason = f"exit code {code}" if code >= 0 else f"signal {-code}"
        raise ClientError(
            f"The training {self._name!r} of the demo ended with {reason} before its last step. "
            f"See {self._log!r}, and start the demo again."
        )

    def wait(self, seconds: float) -> None:
        """Wait for files; see `rule_runner.steps.watcher.Waiter`."""
        self.check()
        self._watcher.wait(seconds)

    def close(self, seconds: float) -> None:
        """Wait `seconds` for the end of the training, then kill it."""
        self._watcher.close()
        end(self.process, seconds)


class LiveObserver(Observer):
    """Forwards to another observer, and counts the steps judged while the training runs."""

    def __init__(self, training: DemoTraining, observer: LogObserver) -> None:
        self._training = training
        self._observer = observer
        self.live = 0

    def progress(self, judged: int, known: int) -> None:
        """Count and forward."""
        if self._training.runs:
            self.live = judged
        self._observer.progress(judged, known)

    def waiting(self, text: str, seconds: float) -> None:
        """Forward."""
        self._observer.waiting(text, seconds)


def run_demo(output: Path) -> int:
    """Train, judge and print; return the exit code, 0 unless it is stopped.

    Raises
    ------
    ClientError
        If a training fails, or a verdict is unexpected.
    OutputError
        If `output` cannot be used.
    """
    surprises: list[str] = []
    try:
        for number, scenario in enumerate(SCENARIOS, 1):
            _say(f"{number}/{len(SCENARIOS)} {scenario.name}: {scenario.text}.")
            evaluated = _evaluate_live(scenario, output)
            if evaluated.stop is not None:
                _say(evaluated.stop.text, sys.stderr)
                return evaluated.stop.exit_code
            surprises += _surprises(scenario, evaluated.result)
    except KeyboardInterrupt:
        _say("Stopped by signal SIGINT.", sys.stderr)
        return EXIT_SIGNAL + signal.SIGINT
    report = try_report(output / "results", "Demo", output)
    if report is not None:
        _say(f"Report of all: {printable(report)}\n")
    _say("\n".join(_hints(output)))
    if surprises:
        raise ClientError(" ".join(surprises))
    return 0


def _say(text: str, stream: TextIO | None = None) -> None:
    """Print and flush: the next line may take seconds."""
    print(text, file=stream, flush=True)


def _evaluate_live(scenario: Scenario, output: Path) -> EvaluationOutcome:
    """Judge one training while it runs, and print its verdicts."""
    trial, results = output / "trials" / scenario.name, output / "results" / scenario.name
    config = resolve(
        EvaluationRequest(
            trial=str(trial),
            rules=tuple(RuleRequest(name=name) for name in RULES),
            parameters=PARAMETERS,
            idle_timeout=_IDLE_TIMEOUT_S,
            output=str(results),
        )
    )
    with _training(scenario, trial) as training:
        terminal = observer(quiet=False)
        live = LiveObserver(training, terminal)
        try:
            with Signals() as signals:
                evaluated = evaluate(config, observer=live, waiter=training, signals=signals)
        finally:
            terminal.close()
        if evaluated.stop is None:
            training.close(_LEAVE_S)
            training.check()
            print_results(evaluated.result, ())
            steps = evaluated.result.trial.steps
            _say(
                f"{live.live} of {steps} steps were judged before the training ended.\n"
                f"Trial: {printable(trial)}\nResults: {printable(results)}\n"
            )
    return evaluated


@contextmanager
def _training(scenario: Scenario, trial: Path) -> Iterator[DemoTraining]:
    """Start a training, and stop it at the end of the block."""
    problem = f"Folder {str(trial)!r} exists already. Choose another one: --output DIR."
    with output_errors(trial):
        with restated(OutputError, FileExistsError, sentence=problem):
            trial.mkdir(parents=True)
        log = trial.with_name(f"{scenario.name}.log").open("wb")
    with log:
        training = DemoTraining(scenario, trial, log)
        try:
            yield training
        finally:
            training.close(0)


def _surprises(scenario: Scenario, result: EvaluationResult) -> Iterator[str]:
    """Yield a message for each unexpected verdict."""
    for rule in result.rules:
        expected = scenario.expected.get(rule.rule, rule.outcome)
        if rule.outcome != expected:
            yield (
                f"Verdict of {rule.rule} on {scenario.name!r} is {rule.outcome} instead of "
                f"{expected}. The installation may be damaged: try rule-runner doctor."
            )


def _hints(output: Path) -> Sequence[str]:
    """Return commands to try next."""
    healthy, deep = (
        shlex.quote(str(output / "trials" / name)) for name in ("healthy", "deep-sigmoid")
    )
    program = _program()
    return (
        "Try next:",
        f"  {program} trial show {healthy}",
        f"  {program} evaluate --trial {deep} --rule VanishingGradient --keep-going",
        f"  {program} rules show VanishingGradient",
    )


def _program() -> str:
    """Return the command that runs this program from the working folder."""
    if shutil.which("rule-runner"):
        return "rule-runner"
    script = Path(sys.executable).with_name("rule-runner")
    if not script.exists():
        return f"{shlex.quote(sys.executable)} -m rule_runner"
    here = Path.cwd()
    return shlex.quote(str(script.relative_to(here) if script.is_relative_to(here) else script))
