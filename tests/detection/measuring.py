"""Measuring: trains the runs of the detection suite, and lets all rules judge them."""

import json
import multiprocessing
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import structlog
from training_runs import Run, all_runs

from builtin_rules import RULES
from rule_runner.config import EvaluationConfig, RuleJobConfig
from rule_runner.loader import load_builtin
from rule_runner.runner import Runner
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


@dataclass(frozen=True, slots=True)
class Trained:
    """A run's trial, and the global step at which its fault begins."""

    path: Path
    onset: int


class _Never:
    """Nothing is waited for: all trials have ended."""

    def wait(self, seconds: float) -> None:
        """Return at once."""


def train(name: str, folder: Path) -> Trained:
    """Train a run, unless `folder` has its trial."""
    path, facts = folder / name, folder / f"{name}.json"
    if not facts.exists():
        shutil.rmtree(path, ignore_errors=True)
        onset = all_runs()[name].train(path)
        facts.write_text(json.dumps({"onset": onset or 0}))
    return Trained(path, json.loads(facts.read_text())["onset"])


def judge(name: str, folder: Path) -> list[Verdict]:
    """Let all rules judge a run that is trained."""
    run, path = all_runs()[name], folder / name
    jobs = tuple(_jobs(run, create_trial(path, timeout=0)))
    results = folder / "results" / name
    others = (str(folder / run.other),) if run.other else ()
    config = EvaluationConfig(
        str(path), jobs, results, other_trials=others, end_grace=0.0, overwrite=True
    )
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
    return found


def _text(evidence: object) -> str:
    """Return a finding in one line."""
    given = {
        key: getattr(evidence, key, None)
        for key in ("tensor", "worker", "measured", "limit", "note")
    }
    return ", ".join(f"{key} {value}" for key, value in given.items() if value is not None)


def _jobs(run: Run, trial: Trial) -> Iterator[RuleJobConfig]:
    for name in JUDGING:
        if name == COMPARING and not run.other:
            continue
        loaded = load_builtin(name)
        given = PARAMETERS.get(name, {})
        start = _last_evaluation(trial) if name in OF_THE_END else None
        yield RuleJobConfig(name, loaded, dict(given), start_step=start)
        if has_literal(name):
            literal = dict(given) | {"literal": "True"}
            yield RuleJobConfig(f"{name}-{LITERAL}", loaded, literal, start_step=start)


def has_literal(rule: str) -> bool:
    """Say whether a rule can judge by its documented sentence to the letter."""
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
    folder: Path, names: Iterable[str], processes: int = 2
) -> tuple[dict[str, int], list[Verdict]]:
    """Train and judge runs; return their onsets by name, and all verdicts."""
    names = list(names)
    needed = dict.fromkeys([*names, *(one for name in names if (one := all_runs()[name].other))])
    folder.mkdir(parents=True, exist_ok=True)
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawned, initializer=_quiet) as pool:
        trained = dict(zip(needed, pool.map(train, needed, [folder] * len(needed)), strict=True))
        verdicts = pool.map(judge, names, [folder] * len(names))
        found = [verdict for some in verdicts for verdict in some]
    return {name: one.onset for name, one in trained.items()}, found
