"""Measuring: trains the runs of the detection suite, and lets all rules judge them."""

import functools
import json
import multiprocessing
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import structlog
from training_runs import Run, all_runs

from builtin_rules import RULES
from rule_runner.config.model import EvaluationConfig, RuleJobConfig
from rule_runner.config.request import EvaluationRequest
from rule_runner.engine.runner import Runner
from rule_runner.loading.loader import load_builtin
from smdebug.core.modes import ModeKeys
from smdebug.trials import Trial, create_trial

# Writes a report and judges nothing.
NOT_JUDGING: Final = frozenset({"CreateXgboostReport"})
COMPARING: Final = "SimilarAcrossRuns"
JUDGING: Final = tuple(name for name in RULES if name not in NOT_JUDGING)
# The same for all runs: rules that must be told which tensors they judge, and between what limits.
PARAMETERS: Final[Mapping[str, Mapping[str, str]]] = {
    "AllZero": {"collection_names": "weights,gradients,relu_output"},
    "TensorVariance": {
        "collection_names": "weights",
        "min_threshold": "0.00001",
        "max_threshold": "10",
    },
    "UnchangedTensor": {"collection_names": "weights,losses"},
}
# Rules about a finished model: asked at the last evaluation, or the last step, not at the start.
OF_THE_END: Final = frozenset({"Confusion"})
SHIPPED: Final = "as shipped"
LITERAL: Final = "literal"
COLUMNS: Final = (SHIPPED, LITERAL)
FOUND: Final = "IssuesFound"
NOT_EVALUATED: Final = "NotEvaluated"


class Verdict(NamedTuple):
    """What one rule said of one run."""

    run: str
    rule: str
    column: str
    outcome: str
    step: int | None = None
    reason: str = ""


class Measured(NamedTuple):
    """The global step at which a run's fault begins, and what all rules said of the run."""

    run: str
    onset: int
    verdicts: tuple[Verdict, ...]


class _Never:
    """Nothing is waited for: all trials have ended."""

    def wait(self, seconds: float) -> None:
        """Return at once."""


def train(name: str, folder: Path) -> int:
    """Train a run, unless `folder` has its trial; return the step at which its fault begins."""
    path, facts = folder / name, folder / f"{name}.json"
    if not facts.exists():
        shutil.rmtree(path, ignore_errors=True)
        onset = all_runs()[name].train(path)
        facts.write_text(json.dumps({"onset": onset or 0}))
    return int(json.loads(facts.read_text())["onset"])


def judge(name: str, folder: Path, columns: Sequence[str]) -> tuple[Verdict, ...]:
    """Let all rules judge a run that is trained."""
    run, path = all_runs()[name], folder / name
    jobs = tuple(_jobs(run, create_trial(path, timeout=0), columns))
    results = folder / "results" / name
    others = (str(folder / run.other),) if run.other else ()
    request = EvaluationRequest(other_trials=others, end_grace=0.0, overwrite=True)
    config = EvaluationConfig(request, jobs, str(path), results)
    evaluated = Runner(config, waiter=_Never()).run()
    found = []
    for one in evaluated.result.rules:
        evidence = one.evidence[0] if one.evidence else None
        reason = "" if evidence is None else _text(evidence)
        column = LITERAL if one.configuration_name.endswith(LITERAL) else SHIPPED
        found.append(
            Verdict(
                name, one.rule, column, one.outcome, one.step, reason or one.status_details or ""
            )
        )
    return tuple(found)


def _text(evidence: object) -> str:
    """Return a finding in one line."""
    given = {
        key: getattr(evidence, key, None)
        for key in ("tensor", "worker", "measured", "limit", "note")
    }
    return ", ".join(f"{key} {value}" for key, value in given.items() if value is not None)


def _jobs(run: Run, trial: Trial, columns: Sequence[str]) -> Iterator[RuleJobConfig]:
    for name in JUDGING:
        if name == COMPARING and not run.other:
            continue
        loaded = load_builtin(name)
        given = PARAMETERS.get(name, {})
        start = _last_evaluation(trial) if name in OF_THE_END else None
        yield RuleJobConfig(name, loaded, dict(given), start_step=start)
        if LITERAL in columns and has_literal(name):
            literal = dict(given) | {"literal": "True"}
            yield RuleJobConfig(f"{name}-{LITERAL}", loaded, literal, start_step=start)


def has_literal(rule: str) -> bool:
    """Return whether a rule can judge by its documented sentence to the letter."""
    return any(one.name == "literal" for one in RULES[rule].PARAMS)


def _last_evaluation(trial: Trial) -> int:
    """Return the first step of the last evaluation; without one, the last step."""
    steps = trial.steps()
    evaluating = [step for step in steps if trial.mode(step) is ModeKeys.EVAL]
    if not evaluating:
        return steps[-1] if steps else 0
    training = [step for step in steps if step < evaluating[-1] and step not in evaluating]
    before = training[-1] if training else -1
    return next(step for step in evaluating if step > before)


def _quiet() -> None:
    """Log nothing in this process."""

    def drop(*_: object) -> structlog.typing.EventDict:
        raise structlog.DropEvent

    structlog.configure(processors=[drop])


def measure(
    folder: Path, names: Iterable[str], processes: int = 2, columns: Sequence[str] = COLUMNS
) -> Iterator[Measured]:
    """Train runs, those that they are compared with too, and yield what the rules say of each."""
    names = list(names)
    others = (all_runs()[name].other for name in names)
    needed = list(dict.fromkeys([*names, *filter(None, others)]))
    folder.mkdir(parents=True, exist_ok=True)
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawned, initializer=_quiet) as pool:
        training = functools.partial(train, folder=folder)
        onsets = dict(zip(needed, pool.map(training, needed), strict=True))
        judging = functools.partial(judge, folder=folder, columns=columns)
        verdicts = pool.map(judging, names)
        for name, found in zip(names, verdicts, strict=True):
            yield Measured(name, onsets[name], found)
