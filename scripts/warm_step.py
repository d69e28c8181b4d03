"""Counts the calls and files that one warm step of built-in rules crosses; fails above its limits.

Each rule judges a small local trial of one gradient and one loss in this process. Once caches are
warm, Python calls of product code are counted from the end of one step to the end of the next: the
next step of `StepSource.ready`, the rule's reads, its verdict, and the limits that are checked
after it.
"""

import logging
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType

import click
import numpy as np
import structlog

from rule_core.model.save_config import SaveConfig
from rule_core.saving.hook import Hook
from rule_core.sources.address import address_of
from rule_runner.config.model import EvaluationConfig, RuleJobConfig
from rule_runner.config.request import EvaluationRequest
from rule_runner.config.resolve import options_of
from rule_runner.engine.observer import Observer
from rule_runner.engine.runner import Runner
from rule_runner.loading.loader import load_builtin

ROOT = Path(__file__).parents[1]
PRODUCT = tuple(
    str(ROOT / name) for name in ("rule_core", "rule_runner", "builtin_rules", "smdebug")
)
STEPS = 40
WARM = 30  # steps judged before the counted one
# Calls and files. About a hundred of the calls of LossNotDecreasing are its own statistics.
LIMITS = {"VanishingGradient": (100, 20), "LossNotDecreasing": (230, 28)}


class CallCounter(Observer):
    """Counts the product's calls between two reports of progress."""

    def __init__(self) -> None:
        self.calls: Counter[CodeType] = Counter()

    def progress(self, judged: int, known: int) -> None:
        """Count the calls of the step after `WARM` steps."""
        del known
        sys.setprofile(self._count if judged == WARM else None)

    def _count(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PRODUCT):
            self.calls[code] += 1


def count(rule: str, folder: Path) -> Counter[CodeType]:
    """Return how often each function is called while a rule judges one warm step."""
    trial = folder / "trial"
    with Hook(trial, save_config=SaveConfig(save_interval=1), include_collections=["all"]) as hook:
        for step in range(STEPS):
            hook.save_tensor("gradient/layer", np.full(8, 1.0 + step), "gradients")
            hook.save_tensor("loss", np.float64(1 / (1 + step)), "losses")
            hook.step()
    counter = CallCounter()
    jobs = (RuleJobConfig(rule, load_builtin(rule)),)
    options = options_of(EvaluationRequest(wait=False))
    config = EvaluationConfig(jobs, address_of(str(trial)), folder / "out", **options)
    Runner(config, observer=counter).run()
    del counter.calls[CallCounter.progress.__code__]
    return counter.calls


@click.command()
@click.option("--rule", "rules", multiple=True, default=tuple(LIMITS), show_default=True)
@click.option("--list", "listed", is_flag=True, help="List the calls, too.")
@click.option("--limit", type=int, help="The most calls, instead of the limit of the rule.")
def main(rules: tuple[str, ...], listed: bool, limit: int | None) -> None:
    """Print how many calls and product files one warm step of each rule crosses."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    over = []
    for rule in rules:
        with tempfile.TemporaryDirectory() as folder:
            calls = count(rule, Path(folder))
        if listed:
            for code, times in calls.items():
                path = Path(code.co_filename).relative_to(ROOT)
                click.echo(f"{times:4} {path}:{code.co_firstlineno} {code.co_qualname}")
        files = {code.co_filename for code in calls}
        click.echo(f"{rule}: {calls.total()} calls in {len(files)} files")
        calls_limit, files_limit = LIMITS.get(rule, (sys.maxsize, sys.maxsize))
        if calls.total() > (limit or calls_limit) or len(files) > files_limit:
            over.append(f"{rule} may take {limit or calls_limit} calls in {files_limit} files")
    if over:
        sys.exit(f"{', '.join(over)}; see --list.")


if __name__ == "__main__":
    main()
