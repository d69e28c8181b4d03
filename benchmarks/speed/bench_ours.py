"""Evaluate built-in rules over a trial as `rule-runner evaluate` does, and report the time.

What is timed is the whole evaluation in a process that is up: opening the trial, its walk, judging,
and the results in an output folder. Findings end nothing, so that all steps are judged.

    python bench_ours.py TRIAL RULE[,RULE...] [--as-remote]

With `--as-remote`, the trial is read as one in S3 is, by several reads at once, without the time
that a server takes.
"""

import sys
import tempfile
from pathlib import Path

from bench_child import Watch

from rule_core.sources.address import address_of
from rule_core.storage.uri import open_store
from rule_runner.config.model import EvaluationConfig, RuleJobConfig
from rule_runner.config.request import EvaluationRequest
from rule_runner.config.resolve import options_of
from rule_runner.engine.runner import Runner
from rule_runner.loading import trials
from rule_runner.loading.loader import load_builtin
from rule_runner.logs import configure

# Rules that judge nothing until they are told what.
WEIGHTS = {"collection_names": "weights"}
PARAMETERS = {
    "AllZero": WEIGHTS,
    "TensorVariance": WEIGHTS | {"min_threshold": "1e-9", "max_threshold": "1e9"},
    "UnchangedTensor": WEIGHTS,
}


def main(trial: str, names: str, *options: str) -> None:
    """Evaluate, and report."""
    configure(-1)
    if options == ("--as-remote",):
        sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
        from faulty_store import REMOTE, CountingStore

        trials.open_store = lambda uri: CountingStore(open_store(uri), REMOTE)
    rules = tuple(
        RuleJobConfig(name, load_builtin(name), PARAMETERS.get(name, {}))
        for name in names.split(",")
    )
    with tempfile.TemporaryDirectory() as output:
        request = EvaluationRequest(keep_going=True, wait=False)
        config = EvaluationConfig(rules, address_of(trial), Path(output), **options_of(request))
        watch = Watch()
        results = Runner(config).run().result.rules
        watch.report(
            max(one.coverage.judged + sum(one.coverage.skipped.values()) for one in results)
        )
    for one in results:
        if one.status == "Error":
            sys.exit(f"Rule {one.rule!r} ended with an error: {one.status_details}")


if __name__ == "__main__":
    main(*sys.argv[1:])
