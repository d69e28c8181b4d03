"""Evaluator: judges a trial in a process of its own, whose end is never the training's."""

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import msgspec

from rule_runner.openings import trial_name
from rule_runner.results import EvaluationResult, RuleResult, TrialSummary
from rule_runner.show import lines, print_table, printable, results_at
from smdebug.storage.uri import is_s3

RESULT: Final = "rule_result.json"
REPORT: Final = "report.html"
_MOST_LINE: Final = 1 << 24  # bytes
# Who supervises it ends it; should that be killed, it ends a day after the last news.
_IDLE_S: Final = 86400
_NICENESS: Final = 5  # the training comes first


class _Rule(msgspec.Struct, rename="pascal"):
    rule_configuration_name: str
    rule_evaluation_status: str
    rule_evaluation_mode: str = "enforce"


class _Detail(msgspec.Struct, rename="pascal"):
    debug_rule_evaluation_statuses: list[_Rule] = []


class _Event(msgspec.Struct):
    detail: _Detail


class Found(Protocol):
    """Hears that a rule has found an issue, once for each rule."""

    def __call__(self, rule: str, *, enforce: bool) -> None:
        """Hear it."""
        ...


@dataclass(frozen=True, slots=True)
class Judged:
    """What an evaluation came to.

    Attributes
    ----------
    rules
        The results that it has written, of rule jobs that ended.
    problem
        What became of the evaluator if some are missing; "" if none is.
    """

    trial: str
    output: Path
    rules: Sequence[RuleResult]
    folders: Sequence[Path]
    problem: str = ""

    def show(self) -> None:
        """Print the verdicts, and where to read more, to stderr: stdout is the script's."""
        found = [rule.coverage for rule in self.rules]
        summary = TrialSummary(
            name=trial_name(self.trial),
            path=self.trial,
            ended=True,
            steps=max((one.known for one in found), default=0),
            first_step=None,
            last_step=None,
            workers=[],
        )
        result = EvaluationResult(trial=summary, rules=list(self.rules))
        if sys.stderr.isatty():
            from rich.console import Console  # noqa: PLC0415 - a terminal only

            print_table(Console(stderr=True), result)
        else:
            _print(*lines(result))
        _print(f"Trial: {printable(shown(self.trial))}")
        if self.rules:
            _print(results_at(short(one) for one in self.folders))
        report = self.output / REPORT
        if report.exists():
            _print(f"Report: {printable(short(report))}")


class Evaluator:
    """Runs `rule-runner evaluate` over a trial while the training job writes it.

    Parameters
    ----------
    trial
        The trial; it may come later.
    output
        Output folder.
    names
        Of the rule jobs.
    options
        Further options of the command.
    found
        Hears of findings.
    """

    def __init__(
        self, trial: str, output: Path, names: Sequence[str], options: Sequence[str], found: Found
    ) -> None:
        self._trial = trial
        self._output = output
        self._folders = [output] if len(names) == 1 else [output / one for one in names]
        self._options = options
        self._tell = found
        self._found: set[str] = set()
        self._process: asyncio.subprocess.Process | None = None

    async def run(self) -> Judged:
        """Evaluate until the trial ends, and return what it came to."""
        paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "rule_runner", "evaluate"),
            *("--trial", self._trial, "--output", str(self._output), *self._options),
            *("--sink=stdout", "--quiet", f"--wait-for-trial={_IDLE_S}"),
            f"--idle-timeout={_IDLE_S}",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            limit=_MOST_LINE,
            # What a terminal sends is for the training; the evaluation then judges what is there.
            start_new_session=True,
        )
        self._process = process
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, _NICENESS)
        if process.stdout is not None:
            async for line in process.stdout:
                self._hear(line)
        return self._judged(await process.wait())

    def stop(self) -> None:
        """End it early; what was judged is written."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.terminate()

    def _hear(self, line: bytes) -> None:
        """Take an event from what it prints; the verdicts that follow are in its files too."""
        with suppress(msgspec.DecodeError):
            event = msgspec.json.decode(line, type=_Event)
            for rule in event.detail.debug_rule_evaluation_statuses:
                name = rule.rule_configuration_name
                if rule.rule_evaluation_status == "IssuesFound" and name not in self._found:
                    self._found.add(name)
                    self._tell(name, enforce=rule.rule_evaluation_mode == "enforce")

    def _judged(self, code: int) -> Judged:
        there = [folder / RESULT for folder in self._folders if (folder / RESULT).exists()]
        found = [msgspec.json.decode(one.read_bytes(), type=RuleResult) for one in there]
        ended = [one for one in found if one.ended_at is not None]
        problem = ""
        if len(ended) < len(self._folders):
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            problem = f"The evaluator {how} before all verdicts."
        return Judged(self._trial, self._output, ended, self._folders, problem)


def short(path: Path) -> Path:
    """Return a path as seen from the working folder, if it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def shown(trial: str) -> str:
    """Return the path of a trial as seen from the working folder, or its address."""
    return trial if is_s3(trial) else str(short(Path(trial)))


def _print(*texts: str) -> None:
    for text in texts:
        print(text, file=sys.stderr)  # noqa: T201 - stdout is the script's
