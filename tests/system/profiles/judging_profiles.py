"""Has all rules about profiles judge jobs of the suite."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from measuring import FOUND, Measured, Verdict
from profile_jobs import GENERATED, all_jobs
from training_runs import Run

from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.resolve import resolve
from rule_runner.engine.runner import Runner
from rule_runner.results.schema import RuleResult

JUDGING: Final = (
    "BatchSize",
    "CPUBottleneck",
    "CollectiveNotJoined",
    "Dataloader",
    "GPUIdleWaitsForHost",
    "GPUMemoryIncrease",
    "IOBottleneck",
    "LoadBalancing",
    "LowGPUUtilization",
    "LowOverlap",
    "MaxInitializationTime",
    "MemoryGrows",
    "SmallKernels",
    "StepOutlier",
    "StragglerRank",
)
# Recorded jobs last seconds, not hours: windows, patience and limits of time are as much shorter.
# Rules about traces have their defaults: a trace has a few steps in any case.
OF_RECORDED: Final[Mapping[str, Mapping[str, str]]] = {
    "BatchSize": {"patience": "10", "window": "10"},
    "CPUBottleneck": {"patience": "10"},
    "Dataloader": {"patience": "1"},
    "GPUMemoryIncrease": {"patience": "10"},
    "IOBottleneck": {"patience": "10"},
    "LoadBalancing": {"patience": "10"},
    "LowGPUUtilization": {"patience": "10", "window": "20"},
    "MaxInitializationTime": {"threshold": "0.05"},
    "StepOutlier": {},
}
WINDOW_US: Final = 1_000_000


class _Never:
    """Waits for nothing: all jobs have ended."""

    def wait(self, seconds: float) -> None:
        """Return at once."""


def judge(name: str, folder: Path) -> Measured:
    """Make a job below a folder, and have all rules judge it."""
    job = all_jobs()[name]
    job.train(folder / "job")
    request = EvaluationRequest(
        profiler_trial=str(folder / "job"),
        rules=tuple(RuleRequest(name=rule) for rule in JUDGING),
        parameters=tuple(_parameters(job)),
        output=str(folder / "results"),
        wait=False,
        keep_going=True,
        report=False,
        end_grace=0.0,
        overwrite=True,
    )
    evaluated = Runner(resolve(request), waiter=_Never()).run()
    return Measured(name, 0, tuple(_verdict(name, result) for result in evaluated.result.rules))


def _parameters(job: Run) -> Iterator[str]:
    if job.kind != GENERATED:
        for rule, shorter in OF_RECORDED.items():
            values = {"scan_interval_us": str(WINDOW_US), **shorter}
            yield from (f"{rule}.{name}={value}" for name, value in values.items())


def _verdict(name: str, result: RuleResult) -> Verdict:
    evidence = result.evidence[0] if result.evidence else None
    note = "" if evidence is None else f"{evidence.measured} over {evidence.limit}"
    return Verdict(
        name,
        result.rule,
        result.outcome,
        result.step,
        note if result.outcome == FOUND else result.status_details or "",
    )


def measure(folder: Path, names: Iterable[str]) -> Iterator[Measured]:
    """Make and judge jobs, one after the other."""
    for name in names:
        yield judge(name, folder / name)
