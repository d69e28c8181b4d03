"""Measuring: trains the runs of the detection suite, and has all rules judge them."""

import functools
import json
import multiprocessing
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import structlog
from training_runs import Run, all_runs

from builtin_rules import RULES
from rule_core.model.segments import global_step
from rule_core.sources.address import address_of
from rule_runner.config.model import EvaluationConfig, RuleJobConfig
from rule_runner.config.request import EvaluationRequest
from rule_runner.config.resolve import options_of
from rule_runner.engine.runner import Runner
from rule_runner.loading.loader import load_builtin
from rule_runner.results.schema import Evidence, RuleResult
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import TensorUnavailableForStep
from smdebug.rules.extensions import Severity
from smdebug.trials import Trial, create_trial

# Writes a report and judges nothing.
# One writes a report; the other compares with good runs, and has a benchmark of its own.
NOT_JUDGING: Final = frozenset({"CreateXgboostReport", "Baseline"})
COMPARING: Final = "SimilarAcrossRuns"
JUDGING: Final = tuple(name for name in RULES if name not in NOT_JUDGING)
# The same for all runs: parameters of rules that have no default for them.
PARAMETERS: Final[Mapping[str, Mapping[str, str]]] = {
    "AllZero": {"collection_names": "weights,gradients,relu_output"},
    "TensorVariance": {"min_threshold": "0.00001", "max_threshold": "10"},
    "UnchangedTensor": {"collection_names": "weights,losses"},
}
# Bounds of users apply to every tensor that they select.
BOUNDED: Final = "TensorVariance"
LENGTHS: Final = re.compile(r"original0$|weight_g$|magnitude")  # of weight norm, and DoRA
# Rules about a finished model: asked at the last evaluation, or the last step, not at the start.
OF_THE_END: Final = frozenset({"Confusion"})
END_MARK: Final = "training_job_end.ts"
FOUND: Final = "IssuesFound"
NOT_EVALUATED: Final = "NotEvaluated"


class Verdict(NamedTuple):
    """The verdict of one rule on one run.

    Attributes
    ----------
    severity
        That of the finding; empty without one.
    delay
        Number of saved steps from the beginning of the fault to the finding.
    notes
        Number of recorded notes, which are no findings.
    """

    run: str
    rule: str
    outcome: str
    step: int | None = None
    reason: str = ""
    severity: str = ""
    delay: int = 0
    notes: int = 0


class Measured(NamedTuple):
    """The global step at which a run's fault begins, and the verdicts of all rules on the run."""

    run: str
    onset: int
    verdicts: tuple[Verdict, ...]


class _Never:
    """Waits for nothing: all trials have ended."""

    def wait(self, seconds: float) -> None:
        """Return at once."""


def train(name: str, folder: Path) -> int:
    """Train a run, unless `folder` has its trial; return the step at which its fault begins."""
    path, facts = folder / name, folder / f"{name}.json"
    if not facts.exists():
        shutil.rmtree(path, ignore_errors=True)
        onset = all_runs()[name].train(path)
        if not (path / "collections").exists():  # logs of other writers do not say that they ended
            (path / END_MARK).touch()
        facts.write_text(json.dumps({"onset": onset or 0}))
    return int(json.loads(facts.read_text())["onset"])


def judge(name: str, onset: int, folder: Path) -> tuple[Verdict, ...]:
    """Have all rules judge a trained run."""
    run, path = all_runs()[name], folder / name
    trial = create_trial(path, timeout=0)
    jobs = tuple(_jobs(run, trial))
    results = folder / "results" / name
    others = (str(folder / run.other),) if run.other else ()
    request = EvaluationRequest(other_trials=others, end_grace=0.0, overwrite=True)
    config = EvaluationConfig(jobs, address_of(str(path)), results, **options_of(request))
    evaluated = Runner(config, waiter=_Never()).run()
    return tuple(_verdict(name, onset, result, trial) for result in evaluated.result.rules)


def _verdict(name: str, onset: int, result: RuleResult, trial: Trial) -> Verdict:
    findings = [each for each in result.evidence if _severity(result, each) is not Severity.NOTE]
    met = result.outcome == FOUND and findings
    segment = result.segment if isinstance(result.segment, int) else 0
    step = None if result.step is None else global_step(segment, result.step)
    return Verdict(
        name,
        result.rule,
        result.outcome,
        step,
        _text(findings[0]) if met else result.status_details or "",
        _severity(result, findings[0]).value if met else "",
        sum(onset < row <= (step or 0) for row in trial.steps()),
        len(result.evidence) - len(findings),
    )


def _severity(result: RuleResult, evidence: Evidence) -> Severity:
    return Severity(getattr(evidence, "severity", None) or RULES[result.rule].SEVERITY)


def _text(evidence: Evidence) -> str:
    """Return a finding in one line."""
    fields = ("tensor", "worker", "measured", "limit", "note")
    values = {key: getattr(evidence, key) for key in fields}
    return ", ".join(f"{key} {value}" for key, value in values.items() if value is not None)


def _jobs(run: Run, trial: Trial) -> Iterator[RuleJobConfig]:
    for name in JUDGING:
        if name in run.unsuited or (name == COMPARING and not run.other):
            continue
        loaded = load_builtin(name)
        parameters = dict(PARAMETERS.get(name, {}))
        if name == BOUNDED:
            parameters |= {"tensor_regex": _spread_weights(trial)}
        start = _last_evaluation(trial) if name in OF_THE_END else None
        yield RuleJobConfig(name, loaded, parameters, start_step=start)


def _spread_weights(trial: Trial) -> str:
    """Return a pattern of the weights to which a lower bound of the variance applies.

    They are matrices, and no lengths of weight norm. Those that start below the bound and have left
    it ten saved steps later, as heads and LoRA's B do, are left out.
    """
    least = float(PARAMETERS[BOUNDED]["min_threshold"])
    names = []
    for name in trial.tensor_names(collection="weights"):
        tensor = trial.tensor(name)
        try:
            values = [tensor.value(step) for step in tensor.steps()[:10]]
        except TensorUnavailableForStep:  # only reductions were saved
            continue
        first, *later = [value for value in values if value is not None] or [np.zeros(0)]
        moves = np.var(first) < least <= np.var(later[-1]) if later and first.size else False
        if first.ndim > 1 and not LENGTHS.search(name) and not moves:
            names.append(re.escape(name))
    return f"^({'|'.join(names)})$" if names else "^$"


def _last_evaluation(trial: Trial) -> int:
    """Return the first step of the last evaluation; without one, the last step."""
    steps = trial.steps()
    evaluating = [step for step in steps if trial.mode(step) is ModeKeys.EVAL]
    if not evaluating:
        return steps[-1] if steps else 0
    training = [step for step in steps if step < evaluating[-1] and step not in evaluating]
    before = training[-1] if training else -1
    return next(step for step in evaluating if step > before)


def _prepare_process() -> None:
    """Log nothing in this process, and do not wait for disks: nothing must survive a crash."""
    os.fsync = lambda _: None

    def drop(*_: object) -> structlog.typing.EventDict:
        raise structlog.DropEvent

    structlog.configure(processors=[drop])


def measure(folder: Path, names: Iterable[str], processes: int = 2) -> Iterator[Measured]:
    """Train runs and those that they are compared with, and yield the verdicts on each."""
    names = list(names)
    others = (all_runs()[name].other for name in names)
    needed = list(dict.fromkeys([*names, *filter(None, others)]))
    folder.mkdir(parents=True, exist_ok=True)
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawned, initializer=_prepare_process) as pool:
        training = functools.partial(train, folder=folder)
        onsets = dict(zip(needed, pool.map(training, needed), strict=True))
        judging = functools.partial(judge, folder=folder)
        verdicts = pool.map(judging, names, [onsets[name] for name in names])
        for name, of_run in zip(names, verdicts, strict=True):
            yield Measured(name, onsets[name], of_run)
