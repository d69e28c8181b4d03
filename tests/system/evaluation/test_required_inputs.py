"""A rule whose inputs are not there: it judges nothing, and says what it looked for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import evaluating
import numpy as np
import profiler_writer
import pytest
import timeline_writer
from evaluating import configured, rule_job, runner
from memory_store import MemoryStore
from profiler_writer import BEGIN_US, END, cpu, io_wait

from builtin_rules import RULES
from builtin_rules.profiler_table import PROFILER_RULES
from rule_core.rules.requirements import TensorInput
from rule_runner.config.model import RuleJobConfig
from rule_runner.config.profiler_windows import over_windows
from rule_runner.engine.outcome import EvaluationOutcome
from rule_runner.loading.loader import load_builtin
from rule_runner.loading.parameters import bind, missing_inputs, required_inputs
from rule_runner.loading.trials import open_trial
from rule_runner.results.schema import RuleResult

Tensors = Mapping[str, Any]
STEPS: Final = 24
SCORES: Final = np.eye(10)[np.arange(60) % 10].astype(np.float32)
# What the frameworks' hooks save, by name; and which collections they put it into.
TRIALS: Final[Mapping[str, tuple[Tensors, Mapping[str, list[str]]]]] = {
    "plain loss": ({"loss": np.ones(1)}, {"losses": ["^loss$"]}),
    "weights only": (
        {"fc.weight": np.arange(64.0).reshape(8, 8)},
        {"weights": ["weight"], "losses": ["loss"], "gradients": ["^gradient"]},
    ),
    "Keras": (
        {
            "loss": np.ones(1),
            "accuracy": np.ones(1),
            "sequential/dense/kernel": np.arange(64.0).reshape(8, 8),
            "gradients/sequential/dense/kernelGrad": np.ones((8, 8)),
            "labels": np.arange(60) % 10,
            "predictions": SCORES,
            "dense/outputs": np.ones((60, 3)),
        },
        {
            "losses": ["^loss$"],
            "metrics": ["^accuracy$"],
            "weights": ["^sequential.*kernel$"],
            "gradients": ["^gradients/"],
            "labels": ["^labels$"],
            "predictions": ["^predictions$"],
        },
    ),
    "XGBoost": (
        {
            "train-rmse": np.ones(1),
            "validation-rmse": np.ones(1),
            "feature_importance/weight/age": np.ones(1),
            "feature_importance/weight/height": np.ones(1),
            "trees/Node": np.arange(7),
            "labels": np.arange(60.0),
            "predictions": np.arange(60.0) + 0.5,
        },
        {
            "losses": ["^[a-z]+-rmse$"],
            "metrics": ["^[a-z]+-rmse$"],
            "feature_importance": ["^feature_importance/"],
            "labels": ["^labels$"],
            "predictions": ["^predictions$"],
        },
    ),
}
LOSS: Final = {"LossNotDecreasing", "LossSpike", "Overfit", "Overtraining", "ResumeLostState"}
SEEN: Final = {"Baseline", "ExplodingTensor", "SimilarAcrossRuns", "StalledTrainingRule"}
HELD: Final = {
    "plain loss": LOSS | SEEN,
    "weights only": {"NormGrowth", "WeightUpdateRatio"} | SEEN,
    "Keras": LOSS
    | SEEN
    | {"ClassImbalance", "Confusion", "GradientNormSpike", "PoorWeightInitialization"}
    | {"GradientAccumulates", "MetricNotImproving", "NormGrowth", "RepeatedBatches"}
    | {"StalledParameters"}
    | {"VanishingGradient", "WeightUpdateRatio"},
    "XGBoost": LOSS
    | SEEN
    | {"ClassImbalance", "Confusion", "CreateXgboostReport"}
    | {"FeatureImportanceOverweight", "RepeatedBatches", "TreeDepth"},
}
# It needs batches of inputs, which no XGBoost trial has; labels alone suffice to be chosen.
UNJUDGED: Final = {("XGBoost", "RepeatedBatches")}
# Rules that judge what their parameters select; no trial here has it.
SELECTED: Final = {"AllZero", "TensorVariance", "UnchangedTensor"}
PARAMETERS: Final = {name: {"collection_names": "nowhere"} for name in SELECTED}
PARAMETERS["TensorVariance"]["max_threshold"] = "1"
ONES: Final = "unit/builtin_rules/tensors/losses/baseline_of_ones.json"
PARAMETERS["Baseline"] = {"baseline": str(Path(__file__).parents[2] / ONES)}


def job(name: str) -> RuleJobConfig:
    others = ("/trial",) if name == "SimilarAcrossRuns" else ()
    return rule_job(name, parameters=PARAMETERS.get(name, {}), other_trials=others)


def evaluated(tmp_path: Path, kind: str, jobs: list[RuleJobConfig]) -> EvaluationOutcome:
    tensors, patterns = TRIALS[kind]
    files = evaluating.trial(dict.fromkeys(range(STEPS), tensors), patterns)
    return runner(configured(tmp_path, jobs), MemoryStore(files)).run()


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


@pytest.mark.parametrize("kind", TRIALS)
def test_a_rule_without_its_inputs_judges_nothing_and_names_them(kind: str, tmp_path: Path) -> None:
    """One trial and all rules: those whose inputs it lacks are NotEvaluated."""
    results = evaluated(tmp_path, kind, [job(name) for name in RULES]).result.rules
    for result in results:
        if result.rule not in HELD[kind]:
            assert_not_evaluated(result)
        elif (kind, result.rule) not in UNJUDGED:
            assert "It looked for" not in (result.status_details or "")
    judged = {result.rule for result in results if result.coverage.judged}
    assert judged <= HELD[kind]


def assert_not_evaluated(result: RuleResult) -> None:
    assert (result.outcome, result.coverage.judged) == ("NotEvaluated", 0), result.rule
    required = required_inputs(bind(load_builtin(result.rule), PARAMETERS.get(result.rule, {})))
    (first, *_) = required
    assert f"It looked for {first}"[:60] in (result.status_details or ""), result.status_details


@pytest.mark.parametrize("kind", TRIALS)
def test_rules_fit_a_trial_that_holds_their_inputs(kind: str) -> None:
    tensors, patterns = TRIALS[kind]
    files = evaluating.trial(dict.fromkeys(range(2), tensors), patterns)
    with evaluating.stores(MemoryStore(files)):
        trial = open_trial("/trial")
    trial.index.refresh(whole=True)
    names = {
        name
        for name in RULES
        if not missing_inputs(bind(load_builtin(name), PARAMETERS.get(name, {})), trial)
    }
    assert names == HELD[kind]


def test_labels_of_another_framework_make_no_xgboost_report(tmp_path: Path) -> None:
    """Neither one column of predictions nor several make a trial an XGBoost one."""
    for width in (1, 10):
        tensors = {"labels": np.ones((60, 1)), "predictions": np.ones((60, width))}
        files = evaluating.trial(dict.fromkeys(range(STEPS), tensors))
        output = tmp_path / str(width)
        config = configured(output, [job("CreateXgboostReport")])
        (result,) = runner(config, MemoryStore(files)).run().result.rules
        assert_not_evaluated(result)
        assert not list(output.rglob("xgboost_report.html"))


def test_inputs_are_described_for_people() -> None:
    relu_outputs = TensorInput(
        "outputs of ReLU", ("relu_output",), ("relu_output", "Relu:0"), "leaky"
    )
    assert (
        str(relu_outputs)
        == "outputs of ReLU (collection 'relu_output', pattern 'relu_output' and 1 more)"
    )


@pytest.mark.parametrize("name", [*RULES, *PROFILER_RULES])
def test_required_inputs_do_not_need_a_trial(name: str) -> None:
    for required in required_inputs(bind(load_builtin(name), PARAMETERS.get(name, {}))):
        assert str(required)


# -- over profiler data ----------------------------------------------------------------------------

PROCESSORS: Final = [cpu([50.0] * 300), io_wait([1.0] * 300)]
WITHOUT_METRICS: Final = "framework"
WITHOUT_GPUS: Final = "processors"
LACKING: Final = {
    "BatchSize": (WITHOUT_GPUS, "the system metric 'GPUUtilization'"),
    "CollectiveNotJoined": (WITHOUT_GPUS, "dumps of torch.distributed's flight recorder"),
    "CPUBottleneck": (WITHOUT_GPUS, "the system metric 'GPUUtilization'"),
    "Dataloader": (WITHOUT_GPUS, "the events of a data loader"),
    "GPUIdleWaitsForHost": (WITHOUT_GPUS, "traces of torch.profiler"),
    "GPUMemoryIncrease": (WITHOUT_GPUS, "the system metric 'GPUMemoryUtilization'"),
    "IOBottleneck": (WITHOUT_GPUS, "the system metric 'GPUUtilization'"),
    "LoadBalancing": (WITHOUT_GPUS, "the system metric 'GPUUtilization'"),
    "LowGPUUtilization": (WITHOUT_GPUS, "the system metric 'GPUUtilization'"),
    "LowOverlap": (WITHOUT_GPUS, "traces of torch.profiler"),
    "MaxInitializationTime": (WITHOUT_GPUS, "framework metrics"),
    "MemoryGrows": (WITHOUT_GPUS, "traces of torch.profiler"),
    "OverallFrameworkMetrics": (WITHOUT_GPUS, "framework metrics"),
    "OverallSystemUsage": (WITHOUT_METRICS, "system metrics"),
    "ProfilerReport": ("nothing", ""),
    "SmallKernels": (WITHOUT_GPUS, "traces of torch.profiler"),
    "StepOutlier": (WITHOUT_GPUS, "the events of steps"),
    "StragglerRank": (WITHOUT_GPUS, "traces of torch.profiler"),
}
EVENTS: Final = [timeline_writer.Event("Forward", "Forward", 1_000_000, 300_000_000)]
KINDS: Final[Mapping[str, Mapping[str, bytes]]] = {
    WITHOUT_GPUS: END | dict(profiler_writer.each_file(PROCESSORS)),
    WITHOUT_METRICS: END
    | {
        timeline_writer.key(BEGIN_US + 301_000_000): timeline_writer.text(
            timeline_writer.records(EVENTS)
        ).encode()
    },
    "nothing": END,
}


def test_every_profiler_rule_is_in_the_table() -> None:
    assert list(LACKING) == list(PROFILER_RULES)


@pytest.mark.parametrize("name", LACKING)
def test_a_profiler_rule_without_its_inputs_judges_nothing(name: str, tmp_path: Path) -> None:
    kind, sought = LACKING[name]
    config = configured(tmp_path, [over_windows(rule_job(name))], profiler_trial="/trial")
    (result,) = runner(config, MemoryStore(dict(KINDS[kind]))).run().result.rules
    assert (result.outcome, result.coverage.judged) == ("NotEvaluated", 0)
    assert sought in (result.status_details or "")
