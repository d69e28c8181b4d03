"""Base configurations of all built-in rules, and actions.

A function configures a debugging rule, a class a profiler rule.
"""

from dataclasses import fields
from typing import Any, Final

from rule_runner.debugger.checks import require
from rule_runner.debugger.rule_configs.actions import (
    SMS as SMS,
    ActionList as ActionList,
    Email as Email,
    StopTraining as StopTraining,
    is_valid_action_object as is_valid_action_object,
)
from rule_runner.debugger.rule_configs.bases import (
    COLLECTIONS,
    EVERY_500,
    KIND,
    PlainRule,
    ProfilerRuleBase,
    check,
    debug_rule,
    named_collection,
    optional_text,
    percentile,
    positive,
)

SCAN_INTERVAL_US: Final = 60_000_000
_OPT_OUT: Final = "opt_out_telemetry"
_EVERY_5: Final = {"save_interval": "5"}
# The SDK omits the names of these two, and users may rely on it.
_NAMELESS: Final = {"relu_input", "relu_output"}


def get_collection(collection_name: str) -> dict[str, Any] | None:
    """Return the configuration of a collection that debugging rules use, or None.

    As in the SDK, that of `relu_input` and of `relu_output` is the parameters alone.
    """
    parameters = COLLECTIONS.get(collection_name)
    if parameters is None or collection_name in _NAMELESS:
        return parameters and dict(parameters)
    return named_collection(collection_name, parameters)


all_zero = debug_rule("AllZero", "tensors hold too many zeros.")
check_input_images = debug_rule("CheckInputImages", "images are not normalised.", "input_image")
class_imbalance = debug_rule(
    "ClassImbalance", "classes are unevenly frequent, or unevenly well predicted."
)
confusion = debug_rule("Confusion", "the confusion matrix is bad somewhere.")
create_xgboost_report = debug_rule(
    "CreateXgboostReport",
    "a report on a training with XGBoost.",
    metrics=_EVERY_5,
    feature_importance=_EVERY_5,
    hyperparameters={"save_steps": "0"},
    predictions=_EVERY_5,
    labels=_EVERY_5,
)
dead_relu = debug_rule("DeadRelu", "too many rectifiers answer zero.", "relu_output")
exploding_tensor = debug_rule("ExplodingTensor", "tensors hold NaN or infinity.")
feature_importance_overweight = debug_rule(
    "FeatureImportanceOverweight", "few features weigh too much.", feature_importance=EVERY_500
)
loss_not_decreasing = debug_rule("LossNotDecreasing", "the loss does not fall.", "losses")
nlp_sequence_ratio = debug_rule(
    "NLPSequenceRatio", "tokens are unevenly frequent in sequences.", "input_sequence"
)
overfit = debug_rule("Overfit", "validation and training losses part.")
overtraining = debug_rule("Overtraining", "training goes on though the losses improve no more.")
poor_weight_initialization = debug_rule(
    "PoorWeightInitialization", "the weights began badly.", "relu_input"
)
saturated_activation = debug_rule("SaturatedActivation", "too many activations are at their ends.")
similar_across_runs = debug_rule("SimilarAcrossRuns", "tensors equal those of another trial.")
stalled_training_rule = debug_rule("StalledTrainingRule", "the training saves nothing more.")
tensor_variance = debug_rule("TensorVariance", "variances are too high or too low.")
tree_depth = debug_rule("TreeDepth", "trees are too deep.")
unchanged_tensor = debug_rule("UnchangedTensor", "tensors stay as they are.")
vanishing_gradient = debug_rule("VanishingGradient", "gradients are too small.", "gradients")
weight_update_ratio = debug_rule(
    "WeightUpdateRatio", "updates of weights are too large or too small.", "weights"
)


class BatchSize(PlainRule):
    """GPU, its memory and CPU are all used little: the batch may be too small."""

    cpu_threshold_p95: float = percentile(70)
    gpu_threshold_p95: float = percentile(70)
    gpu_memory_threshold_p95: float = percentile(70)
    patience: float = positive(1000)
    window: float = positive(500)
    scan_interval_us: float = positive(SCAN_INTERVAL_US)


class CPUBottleneck(PlainRule):
    """The GPU is idle while the CPU is busy."""

    threshold: float = percentile(50)
    gpu_threshold: float = percentile(10)
    cpu_threshold: float = percentile(90)
    patience: float = positive(1000)
    scan_interval_us: float = positive(SCAN_INTERVAL_US)


class Dataloader(PlainRule):
    """Data loader processes are too few or too many for the cores."""

    min_threshold: float = positive(70)
    max_threshold: float = positive(200)
    scan_interval_us: float = positive(SCAN_INTERVAL_US)


class GPUMemoryIncrease(PlainRule):
    """The memory used on a GPU grows."""

    increase: float = positive(5)
    patience: float = positive(1000)
    window: float = positive(10)
    scan_interval_us: float = positive(SCAN_INTERVAL_US)


class IOBottleneck(PlainRule):
    """The GPU is idle while the CPU waits for input and output."""

    threshold: float = percentile(50)
    gpu_threshold: float = percentile(10)
    io_threshold: float = percentile(50)
    patience: float = positive(1000)
    scan_interval_us: float = positive(SCAN_INTERVAL_US)


class LoadBalancing(PlainRule):
    """GPUs of one machine are used unevenly."""

    threshold: float = percentile(0.5)
    patience: float = positive(1000)
    scan_interval_us: float = positive(SCAN_INTERVAL_US)


class LowGPUUtilization(PlainRule):
    """A GPU is used little, or its use fluctuates."""

    threshold_p95: float = percentile(70)
    threshold_p5: float = percentile(10)
    window: float = positive(500)
    patience: float = positive(1000)
    scan_interval_us: float = positive(SCAN_INTERVAL_US)


class MaxInitializationTime(PlainRule):
    """The time before the first step is long."""

    threshold: float = positive(20)
    scan_interval_us: float = positive(SCAN_INTERVAL_US)


class OverallFrameworkMetrics(PlainRule):
    """A summary of the time that the parts of the framework take; it judges nothing."""

    scan_interval_us: float = positive(SCAN_INTERVAL_US)


class OverallSystemUsage(PlainRule):
    """A summary of the use of each resource; it judges nothing."""

    scan_interval_us: float = positive(SCAN_INTERVAL_US)


class StepOutlier(PlainRule):
    """Some steps take much longer than the others."""

    stddev: float = positive(3)
    mode: str | None = optional_text()
    n_outliers: float = positive(10)
    scan_interval_us: float = positive(SCAN_INTERVAL_US)


_PLAIN_RULES: Final = {rule.__name__.lower(): rule for rule in PlainRule.__subclasses__()}


class ProfilerReport(ProfilerRuleBase):
    """A report on all that the profiler rules find.

    Parameters
    ----------
    rule_parameters
        ``<RuleName>_<parameter>=value``, names in any case, each value as the class of that rule
        takes it; and `opt_out_telemetry`: a boolean, or the string of one.

    Raises
    ------
    AssertionError
        If the rule is unknown, or rejects the value.
    TypeError
        If the rule has no such parameter, or the value is not a number.
    """

    def __init__(self, **rule_parameters: Any) -> None:
        for key, value in rule_parameters.items():
            _check(key, value)
        self._take(rule_parameters)


def _check(key: str, value: Any) -> None:
    if key.lower() == _OPT_OUT:
        booleans = {"true", "false"}
        require(str(value).lower() in booleans, _OPT_OUT, "True or False", value)
        return
    rule_name, underscore, name = key.lower().partition("_")
    require(bool(underscore), "names", "<rule_name>_<parameter_name>", key)
    names = ", ".join(rule.__name__ for rule in _PLAIN_RULES.values())
    require(rule_name in _PLAIN_RULES, "names", f"<rule name>_..., a rule name one of {names}", key)
    kinds = {item.name: item.metadata[KIND] for item in fields(_PLAIN_RULES[rule_name])}
    if name not in kinds:
        rule = _PLAIN_RULES[rule_name].__name__
        raise TypeError(
            f"Rule {rule} has no parameter {name!r}. Its parameters: {', '.join(kinds)}."
        )
    check(name, kinds[name], value)
