"""train: runs a training script as it is, saves what it trains, and judges it meanwhile."""

import asyncio
import json
import shlex
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import structlog

from rule_runner.config import RuleJobConfig, check_is_local, default_output
from rule_runner.durable import output_errors
from rule_runner.errors import EXIT_ISSUES, OutputError
from rule_runner.options import rule_jobs
from rule_runner.rule_requests import parse_requests
from rule_runner.show import printable
from rule_runner.train_evaluator import Evaluator, Judged, shown
from rule_runner.train_hook import SAVE_INTERVAL, hook_document
from rule_runner.train_script import TrainingScript
from smdebug.auto import HOOK
from smdebug.core.locations import END_OF_JOB
from smdebug.exceptions import SMDebugError
from smdebug.storage import open_output

# Of those, LossNotDecreasing needs nothing but losses, which every framework has.
DEFAULT_RULES: Final = ("ExplodingTensor", "LossNotDecreasing", "VanishingGradient")
FORWARDED: Final = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
    *(signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2),
)
_log: Final = structlog.get_logger()
_ENDING: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """What is run, saved and judged.

    Attributes
    ----------
    command
        The script, with its program before it.
    hook
        The hook's JSON object.
    trial
        Where the hook saves to; a hook of the script's own may save elsewhere.
    results
        Output folder of the evaluation.
    rules
        The rule jobs.
    evaluate
        Options of `rule-runner evaluate`, without trial and output.
    stop_on_finding
        Whether a finding of a rule in mode enforce ends the script.
    grace
        Seconds that the script gets to end.
    """

    command: tuple[str, ...]
    hook: Mapping[str, Any]
    trial: Path
    results: Path
    rules: tuple[RuleJobConfig, ...]
    evaluate: tuple[str, ...]
    stop_on_finding: bool
    grace: float


def train(**options: Any) -> int:
    """Run the script and judge it; print the verdicts, and return the exit code.

    Raises
    ------
    ClientError, UsageError, OutputError
        If it cannot be started as the options say; then nothing is run.
    """
    config = _configuration(options)
    with tempfile.TemporaryDirectory(prefix="rule-runner-") as control:
        return asyncio.run(Supervisor(config, Path(control)).run())


def _configuration(options: Mapping[str, Any]) -> TrainConfig:
    command, file = options["command"], options["hook_config"]
    rules = options["rule"] or (() if options["source"] else DEFAULT_RULES)
    jobs = rule_jobs(
        parse_requests(rules, options["source"]),
        options["param"],
        modes=options["mode"],
        other_trials=options["other_trial"],
    )
    interval = options["save_interval"] or (SAVE_INTERVAL if file is None else None)
    document = hook_document(file, jobs, options["collections"], interval)
    output = options["output"] or default_output(_name(command), datetime.now().astimezone())
    given = options["trial"] or document.get("LocalPath") or output / "trial"
    check_is_local(output, "--output of train")
    check_is_local(given, "--trial of train")
    trial, results = Path(given).absolute(), output / "results"
    for folder, option in ((trial, "--trial"), (results, "--output")):
        _check_is_free(folder, option)
    return TrainConfig(
        command=command,
        hook={**document, "LocalPath": str(trial)},
        trial=trial,
        results=results,
        rules=jobs,
        evaluate=(
            *(f"--rule={one}" for one in rules),
            *(f"--source={one}" for one in options["source"]),
            *(f"--param={one}" for one in options["param"]),
            *(f"--mode={one}" for one in options["mode"]),
            *(f"--other-trial={one}" for one in options["other_trial"]),
            *(["--keep-going"] if options["keep_going"] else []),
        ),
        stop_on_finding=options["stop_on_finding"],
        grace=options["grace"],
    )


def _name(command: Sequence[str]) -> str:
    """Return what the script is called: the first Python file among its words, or its program."""
    return Path(next((one for one in command if one.endswith(".py")), command[0])).stem


def _check_is_free(folder: Path, option: str) -> None:
    with output_errors(folder):
        try:
            taken = any(folder.iterdir())
        except FileNotFoundError:
            return
    if taken:
        msg = f"Folder {str(folder)!r} holds something already. Give another one: {option} DIR."
        raise OutputError(msg)


class Supervisor:
    """Runs the script and, from the first step that is saved, the evaluation beside it.

    Parameters
    ----------
    config
        What is run.
    control
        A folder for what this process and the script tell each other.
    """

    def __init__(self, config: TrainConfig, control: Path) -> None:
        self._config = config
        self._control = control
        self._script: TrainingScript | None = None
        self._evaluator: Evaluator | None = None
        self._trial = ""
        self._judging: asyncio.Task[Judged] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._frameworks: list[str] = []
        self._asked_to_end = False

    async def run(self) -> int:
        """Return the exit code: the script's, or 10 if a rule has stopped it."""
        (self._control / HOOK).write_text(json.dumps(self._config.hook), "utf-8")
        loop = asyncio.get_running_loop()
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                loop.add_signal_handler(number, self._forward, number)
        script = await TrainingScript.start(self._config.command, self._control, self._hear)
        self._script = script
        try:
            await script.wait()
            if self._asked_to_end:
                await script.clear(self._config.grace)
            if self._stopping is not None:
                await self._stopping
            await self._conclude(script)
        except Exception:  # noqa: BLE001 - a defect of ours hides no exit code
            _log.exception("training_not_judged")
        finally:
            script.close()
        return script.exit_code if self._stopping is None else EXIT_ISSUES

    def _hear(self, told: Mapping[str, str]) -> None:
        """Take note of what a Python of the script tells."""
        match told:
            case {"framework": str(name)} if name not in self._frameworks:
                self._frameworks.append(name)
            case {"trial": str(path)} if self._judging is None:
                self._trial = path
                names = [one.configuration_name for one in self._config.rules]
                output, options = self._config.results, self._config.evaluate
                self._evaluator = Evaluator(self._trial, output, names, options, self._found)
                self._judging = asyncio.create_task(self._judge(self._evaluator))

    async def _judge(self, evaluator: Evaluator) -> Judged:
        judged = await evaluator.run()
        if judged.problem and self._script is not None and self._script.runs:
            say(f"{judged.problem} The training goes on.")
        return judged

    def _found(self, rule: str, *, enforce: bool) -> None:
        """Say what a rule has found, and stop the script if that is asked for."""
        script = self._script
        if script is None or not script.runs or self._stopping is not None:
            return
        if self._config.stop_on_finding and enforce:
            say(f"{rule} has found an issue: the training is stopped.")
            self._stopping = asyncio.create_task(script.stop(self._config.grace))
        else:
            say(f"{rule} has found an issue; the training goes on.")

    def _forward(self, number: int) -> None:
        """Hand a signal to the script; once that has ended, end the evaluation."""
        if self._script is not None and self._script.runs:
            self._asked_to_end = self._asked_to_end or number == signal.SIGTERM
            self._script.send(number)
        elif self._evaluator is not None and number in _ENDING:
            self._evaluator.stop()

    async def _conclude(self, script: TrainingScript) -> None:
        """Have the evaluation end, and print what it came to."""
        say(f"The training {self._how(script)}.")
        if self._judging is None:
            say(nothing_saved(self._frameworks))
            return
        mark_as_ended(self._trial)
        judged = await self._judging
        judged.show()
        if judged.problem:
            again = ["rule-runner", "evaluate", "--trial", shown(self._trial)]
            command = shlex.join([*again, *self._config.evaluate, "--output", "DIR"])
            say(f"{judged.problem} The training was not touched. Judge it with: {command}")

    def _how(self, script: TrainingScript) -> str:
        how = f"ended with exit code {script.exit_code}"
        return how if self._stopping is None else f"was stopped, and {how}"


def mark_as_ended(trial: str) -> None:
    """Tell readers of a trial that nothing more comes, where its script did not live to do so."""
    with suppress(OSError, SMDebugError):
        open_output(trial).open(END_OF_JOB).publish()


def nothing_saved(frameworks: Sequence[str]) -> str:
    """Return why there is nothing to judge."""
    text = "The script has saved nothing, so nothing was judged."
    if frameworks:
        names = " and ".join(frameworks)
        return f"{text} It imported {names}, and no training of a model was seen."
    return (
        f"{text} No Python of it that has rule-runner imported PyTorch, XGBoost or Keras "
        "(with -I, -E or -S Python ignores who starts it)."
    )


def say(text: str) -> None:
    """Print a sentence of ours among what the script writes to stderr."""
    print(f"rule-runner: {printable(text)}", file=sys.stderr, flush=True)  # noqa: T201
