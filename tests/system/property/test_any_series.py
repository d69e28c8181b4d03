"""No built-in rule raises, whatever the series of a run hold, in one segment or in several."""

import contextlib
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import evaluating
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from judging import opened, save
from judging_rows import judge_rows

from builtin_rules import RULES
from rule_runner.engine.invocation import InProcessInvoker, InvocationOutcome
from smdebug.core.modes import ModeKeys

NAMES = (
    "loss",
    "d_loss",
    "grad_norm",
    "learning_rate",
    "loss_scale",
    "policy_entropy",
    "reward",
    "optimizer/grad_norm",
    "optimizer/stale_grad_norm",
    "optimizer/update_norm/fc.weight",
    "model/training_mode",
    "accuracy",
    "train-auc",
)
HUGE, DENORMAL = sys.float_info.max, sys.float_info.min / 2**52
SPECIAL = (0.0, -0.0, 1.0, -1.0, HUGE, -HUGE, DENORMAL, math.nan, math.inf, -math.inf)
# Arrays by a name that puts them into the collections that rules read.
ARRAYS = {
    "fc.weight": (2, 3),
    "fc.bias": (3,),
    "gradient/fc.weight": (2, 3),
    "fc_relu_output_0": (4, 3),
    "fc_tanh_input_0": (4, 3),
    "crossentropyloss_input_0": (4, 3),
    "input_image": (2, 1, 2, 2),
    "input_sequence": (2, 4),
    "labels": (4,),
    "predictions": (4, 3),
    "attention/a/entropy": (2,),
    "router/a/load": (4,),
    "mu_output_0": (4, 2),
    "embeddings": (4, 2),
    "samples": (4, 2),
    "loss": (1,),
}
COLLECTIONS = {
    "weights": r"^fc\.weight",
    "biases": r"^fc\.bias",
    "gradients": "^gradient",
    "relu_output": "relu_output",
    "relu_input": "relu_output",
    "tanh_input": "tanh_input",
    "sigmoid_input": "tanh_input",
    "input_image": "^input_image",
    "input_sequence": "^input_sequence",
    "labels": "^labels",
    "predictions": "^predictions",
    "latent_means": "^mu_",
    "embeddings": "^embeddings",
    "samples": "^samples",
    "losses": "^loss",
}
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numpy, about overflows
values = st.sampled_from(SPECIAL) | st.floats(-10, 10)
patterns = st.lists(values, min_size=1, max_size=4)


@st.composite
def series(draw: st.DrawFn, rows: int) -> Sequence[float]:
    """Draw a series: special values, then a short pattern that repeats, then special values."""
    first, last = (draw(st.lists(values, max_size=12)) for _ in range(2))
    pattern = draw(patterns)
    repeated = (pattern * rows)[: max(0, rows - len(first) - len(last))]
    return [*first, *repeated, *last][:rows]


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[int, Mapping[str, float]]]:
    """Draw the rows of a log; where steps go back, a segment begins."""
    rows = draw(st.sampled_from((1, 2, 3, 5, 30, 60)))
    columns = {
        name: draw(series(rows)) for name in draw(st.sets(st.sampled_from(NAMES), min_size=1))
    }
    restart = draw(st.integers(1, rows))
    return [
        (
            row if row < restart else row - restart,
            {name: column[row] for name, column in columns.items()},
        )
        for row in range(rows)
    ]


def log_of(*losses: float) -> list[tuple[int, Mapping[str, float]]]:
    return [(step, {"loss": loss}) for step, loss in enumerate(losses)]


# All rules judge each example.
few_examples = settings(max_examples=max(4, settings.default.max_examples // 5))
ONES = Path(__file__).parents[2] / "unit/builtin_rules/tensors/losses/baseline_of_ones.json"
RULES_OF_ONE_TRIAL = [name for name in RULES if name != "SimilarAcrossRuns"]


@few_examples
@given(rows=logs(), evaluation=st.none() | logs())
@example(rows=log_of(0, 1, 2, 3), evaluation=None)
@example(rows=log_of(0, 0, 0, 0), evaluation=None)
@example(rows=log_of(*[math.nan] * 12), evaluation=None)
@example(rows=[(0, dict.fromkeys(NAMES, HUGE))], evaluation=[(0, dict.fromkeys(NAMES, -HUGE))])
@example(rows=log_of(0), evaluation=log_of(HUGE, HUGE, HUGE))
def test_no_rule_raises_on_any_log(rows: Any, evaluation: Any) -> None:
    sources = [rows] if evaluation is None else [rows, evaluation]
    for rule in RULES_OF_ONE_TRIAL:
        judge_rows(RULES[rule], *sources, modes={1: ModeKeys.EVAL}, **parameters(rule))


def parameters(rule: str) -> dict[str, Any]:
    """Return the parameters without which a rule judges nothing."""
    needed = {"tensor_regex": ".*", "max_threshold": 1.0, "baseline": str(ONES)}
    return {param.name: needed[param.name] for param in RULES[rule].PARAMS if param.name in needed}


@few_examples
@given(data=st.data(), workers=st.integers(1, 2))
def test_no_rule_raises_on_any_arrays(
    data: st.DataObject, workers: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("trial")
    steps = data.draw(st.integers(1, 4))
    for worker in range(workers):
        save_arrays(root, data, steps, f"worker_{worker}", workers)
    for rule in RULES_OF_ONE_TRIAL:
        trial = opened(root)
        invoker = InProcessInvoker(rule, RULES[rule](trial, **parameters(rule)), [trial])
        results = [*map(invoker.judge, trial.steps()), invoker.finish(steps - 1)]
        failed = [result for result in results if result.did is InvocationOutcome.FAILED]
        assert not failed, rule


@pytest.fixture(autouse=True, scope="module")
def _quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Log nothing, and let rules that write reports write them to a temporary folder."""
    evaluating.log_nothing()
    with contextlib.chdir(tmp_path_factory.mktemp("reports")):
        yield


def save_arrays(root: Path, data: st.DataObject, steps: int, worker: str, workers: int) -> None:
    def array(shape: Sequence[int]) -> Any:
        pattern = data.draw(patterns)
        return np.resize(np.array(pattern), shape)

    content = {
        step: {name: array(shape) for name, shape in ARRAYS.items()} for step in range(steps)
    }
    save(root, content, worker=worker, num_workers=workers, collections=COLLECTIONS)
