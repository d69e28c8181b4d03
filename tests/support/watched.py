"""Controllers without processes: a scripted stand-in for evaluations, and trials that are logs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import reports

from rule_runner.config.request import EvaluationRequest
from rule_runner.index.database import WatchDatabase
from rule_runner.index.records import TrialRecord
from rule_runner.results.durable_files import make_folder
from rule_runner.results.file_names import EVENTS, REPORT
from rule_runner.results.schema import RuleResult
from rule_runner.results.versions import versions
from rule_runner.watch.config import WatchConfig
from rule_runner.watch.controller import Controller
from rule_runner.watch.discovery import parse_root
from rule_runner.watch.evaluations import EndedEvaluation
from rule_runner.watch.options import Intervals, WatchOptions


def log(root: Path, name: str = "a") -> Path:
    """Write a trial: a log with one row, in a folder of its own."""
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log.csv").write_text("step,loss\n1,0.5\n")
    return folder


def result(trial: Path | str, name: str = "LossSpike", **more: Any) -> RuleResult:
    """Return the result of a rule job of this version over a trial."""
    return reports.result(name, **({"trial": str(trial), "versions": versions()} | more))


def save(output: Path, *results: RuleResult, report: bool = True) -> None:
    """Write results as an evaluation does."""
    make_folder(output)
    reports.write(output, *results)
    (output / EVENTS).touch()
    if report:
        (output / REPORT).write_text("report")


class ScriptedEvaluations:
    """Records what is started; a test decides how each evaluation ends.

    `held` are the outputs that evaluations of an earlier controller hold.
    """

    problem = ""
    is_ready = True

    def __init__(self) -> None:
        self.requests: dict[str, list[EvaluationRequest]] = {}
        self.running: set[str] = set()
        self.held: set[str] = set()
        self.terminated = False
        self._ended: dict[str, EndedEvaluation] = {}

    @property
    def outputs(self) -> list[str]:
        return sorted(self.running)

    def __len__(self) -> int:
        return len(self.running)

    def __contains__(self, output: object) -> bool:
        return output in self.running

    def start(self, output: str, request: EvaluationRequest) -> None:
        if output in self.running:
            return
        self.requests.setdefault(output, []).append(request)
        self.running.add(output)

    def adopt(self, output: str) -> EndedEvaluation | None:
        self.running |= self.held & {output}
        return None if output in self.running else EndedEvaluation(output, None, "")

    def close(self) -> None:
        pass

    def ended(self) -> Iterator[EndedEvaluation]:
        for output, ended in [*self._ended.items()]:
            yield ended
            del self._ended[output]
            self.running.discard(output)

    def end(
        self, output: str, code: int | None = 0, last_line: str = "", pause: float | None = None
    ) -> None:
        self._ended[output] = EndedEvaluation(output, code, last_line, pause)

    def terminate_one(self, output: str) -> None:
        self.end(output, 143)

    def pause_one(self, output: str) -> None:
        self.end(output, 75, pause=0.0)

    def terminate(self) -> None:
        self.terminated = True
        for output in self.running:
            self.end(output, 143)


class Winding:
    """Lets time pass instead of waiting."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds


class Watch:
    """A controller over `tmp_path / "runs"`, with scripted evaluations and a clock of the test."""

    def __init__(self, tmp_path: Path, clock: Any, **fields: Any) -> None:
        self.runs = tmp_path / "runs"
        self.clock = clock
        self.evaluations = ScriptedEvaluations()
        self.options = WatchOptions(
            jobs=fields.pop("jobs", {}),
            once=fields.pop("once", False),
            retention=fields.pop("retention", None),
            intervals=Intervals(stop=1.0),
        )
        roots = fields.pop("roots", [str(self.runs)])
        self.path = tmp_path / "out" / "watch.sqlite"
        defaults = {"output": str(tmp_path / "out" / "{trial}"), "max_concurrent": 2}
        self.config = WatchConfig(roots=tuple(roots), **(defaults | fields))
        self.controller = self.again()

    def again(self) -> Controller:
        """Return a new controller, as after the old one has ended."""
        self.controller = Controller(
            self.config,
            [parse_root(root) for root in self.config.roots],
            WatchDatabase(self.path),
            self.evaluations,  # type: ignore[arg-type]
            self.clock,
            Winding(self.clock),
            self.options,
        )
        return self.controller

    def tick(self, seconds: float = 1.0) -> None:
        """Let time pass, then the controller work."""
        self.clock.now += seconds
        self.controller.tick()

    def trial(self, folder: Path) -> TrialRecord:
        record = self.controller.database.trial_at(str(folder))
        assert record is not None
        return record

    def state(self, folder: Path) -> str:
        return str(self.trial(folder).state)

    def end(self, folder: Path, code: int | None = 0, **fields: Any) -> None:
        """End the evaluation of a trial with one result."""
        output = self.trial(folder).output
        save(Path(output), result(folder, **fields))
        self.evaluations.end(output, code)
