"""Measures how often the rule Baseline errs on 40 small recipes: false alarms, and what it misses.

    .venv/bin/python benchmarks/baselines RUNS --half tuned
    .venv/bin/python benchmarks/baselines RUNS --half held-out
    .venv/bin/python benchmarks/baselines --golden FOLDER

RUNS is a folder in which the runs are trained if they are missing (needs torch; two minutes).
"""

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
from golden import print_golden
from recipes import RECIPES, SEEDS, Recipe, write_runs

from builtin_rules.statistics.baselines.baseline_file import BaselineFile, make_baseline
from builtin_rules.statistics.baselines.differences import differences
from rule_core.sources.options import DEFAULT
from rule_core.trials.trial import Trial
from rule_runner.loading.trials import read_trial

Rows = list[dict[str, float]]
LOSSES: Final = ("loss", "val_loss")
RAMP: Final = (0.3, 0.7)  # of the run, over which a regression of the loss develops


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="?", help="folder of the runs")
    parser.add_argument("--half", choices=["tuned", "held-out"], default="tuned")
    parser.add_argument("--golden", type=Path, help="folder of golden values to read instead")
    options = parser.parse_args()
    if options.golden:
        print_golden(options.golden)
        return
    write_runs(options.runs)
    recipes = [each for each in RECIPES if each.is_held_out == (options.half == "held-out")]
    print(f"{len(recipes)} recipes, {options.half}")
    _print_false_alarms(options.runs, recipes)
    _print_regressions(options.runs, recipes)


def _trial(folder: Path) -> Trial:
    return read_trial(str(folder), DEFAULT)[0]


def _folder(root: Path, recipe: Recipe, seed: int) -> Path:
    return root / recipe.name / f"seed_{seed}"


def _findings(baseline: BaselineFile, trial: Trial) -> list[tuple[str, str]]:
    return [
        (each.metric or "", each.quantity)
        for each in differences(baseline, trial)
        if each.is_outside and not each.is_better
    ]


def _pairs(count: int) -> Iterator[tuple[Sequence[int], int]]:
    """Yield the seeds of `count` good runs, and the seed that is judged."""
    if count == 1:
        yield from (((good,), judged) for good, judged in permutations(range(SEEDS), 2))
        return
    for judged in range(SEEDS):
        yield [(judged + offset) % SEEDS for offset in range(1, count + 1)], judged


def _print_false_alarms(root: Path, recipes: Sequence[Recipe]) -> None:
    print("\ngood runs | pairs | flagged | share | by metric and quantity")
    for count in (5, 4, 3, 2, 1):
        pairs, flagged, reasons = 0, 0, Counter[tuple[str, str]]()
        for recipe in recipes:
            trials = [_trial(_folder(root, recipe, seed)) for seed in range(SEEDS)]
            for good, judged in _pairs(count):
                found = _findings(make_baseline([trials[seed] for seed in good]), trials[judged])
                pairs, flagged = pairs + 1, flagged + bool(found)
                reasons.update(set(found))
        listed = ", ".join(
            f"{name} {what} {number}" for (name, what), number in reasons.most_common(6)
        )
        print(f"{count} | {pairs} | {flagged} | {flagged / pairs:.1%} | {listed or 'none'}")


def _rows(folder: Path) -> Rows:
    lines = (folder / "metrics.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _final(rows: Rows, name: str) -> float:
    """Return the final loss as people read it: the mean of the last tenth of its rows."""
    values = [row[name] for row in rows if name in row]
    return float(np.mean(values[-max(1, len(values) // 10) :]))


def _deviation(every: Sequence[Rows], name: str) -> float:
    """Return the relative deviation of the final loss over all seeds."""
    finals = np.array([_final(rows, name) for rows in every])
    return float(finals.std(ddof=1) / finals.mean())


def _scaled(rows: Rows, growth: dict[str, float], *, ramp: bool) -> Rows:
    """Return rows in which series have grown, all along or in the course of the run."""
    first, last = RAMP if ramp else (-1.0, 0.0)
    scaled: Rows = []
    for position, row in enumerate(rows):
        share = min(1.0, max(0.0, (position / len(rows) - first) / (last - first)))
        scaled.append({k: v * (1 + (growth.get(k, 1.0) - 1) * share) for k, v in row.items()})
    return scaled


def _print_regressions(root: Path, recipes: Sequence[Recipe]) -> None:
    print("\nregression | found by 5 good runs | by 3 | by 1")
    for title, growths, ramp in _regressions():
        shares = [_share_found(root, recipes, count, growths, ramp=ramp) for count in (5, 3, 1)]
        print(f"{title} | {' | '.join(f'{share:.1%}' for share in shares)}")
    print("\n(known mean and deviation over all seeds | flagged | found)")
    for limit in (1.6, 1.8, 2.0):
        print(
            f"{limit} deviations | "
            + " | ".join(f"{each:.1%}" for each in _known(root, recipes, limit))
        )


Growths = Callable[[Sequence[Rows]], dict[str, float]]


def _regressions() -> Iterator[tuple[str, Growths, bool]]:
    """Yield each regression: its title, how much each series grows, and whether with time."""

    def of_losses(names: Sequence[str], deviations: float, least: float) -> Growths:
        return lambda every: {
            name: 1 + max(least, deviations * _deviation(every, name)) for name in names
        }

    yield "losses: 2 % or 3 deviations", of_losses(LOSSES, 3, 0.02), True
    yield "validation loss alone: 2 % or 3 deviations", of_losses(LOSSES[1:], 3, 0.02), True
    yield "losses: 5 % or 5 deviations", of_losses(LOSSES, 5, 0.05), True
    yield "losses: 5 % or 8 deviations", of_losses(LOSSES, 8, 0.05), True
    yield "speed: 5 % slower", lambda _: {"samples_per_second": 0.95}, False
    yield "gradient norm: factor 1.5", lambda _: {"grad_norm": 1.5}, False
    yield "gradient norm: factor 1 / 1.5", lambda _: {"grad_norm": 1 / 1.5}, False


def _share_found(
    root: Path, recipes: Sequence[Recipe], count: int, growths: Growths, *, ramp: bool
) -> float:
    found = []
    with TemporaryDirectory() as scratch:
        for recipe in recipes:
            folders = [_folder(root, recipe, seed) for seed in range(SEEDS)]
            every = [_rows(folder) for folder in folders]
            trials = [_trial(folder) for folder in folders]
            growth = growths(every)
            for good, judged in [*_pairs(count)][:SEEDS]:
                changed = Path(scratch, "run")
                changed.mkdir(exist_ok=True)
                lines = map(json.dumps, _scaled(every[judged], growth, ramp=ramp))
                (changed / "metrics.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
                baseline = make_baseline([trials[seed] for seed in good])
                names = {name for name, _ in _findings(baseline, _trial(changed))}
                found.append(bool(names & growth.keys()))
    return float(np.mean(found))


def _known(root: Path, recipes: Sequence[Recipe], limit: float) -> tuple[float, float]:
    """Return what a rule flags and finds that knows mean and deviation of the final losses."""
    flagged: list[bool] = []
    found: list[bool] = []
    for recipe in recipes:
        every = [_rows(_folder(root, recipe, seed)) for seed in range(SEEDS)]
        finals = {name: np.array([_final(rows, name) for rows in every]) for name in LOSSES}
        deviations = {name: _deviation(every, name) for name in LOSSES}
        for seed in range(SEEDS):
            healthy = {n: v[seed] / v.mean() - 1 for n, v in finals.items()}
            worse = {
                n: (1 + each) * (1 + max(0.02, 3 * deviations[n])) - 1
                for n, each in healthy.items()
            }
            flagged.append(any(healthy[n] > limit * deviations[n] for n in LOSSES))
            found.append(any(worse[n] > limit * deviations[n] for n in LOSSES))
    return float(np.mean(flagged)), float(np.mean(found))


if __name__ == "__main__":
    main()
