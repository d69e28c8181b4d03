"""Each built-in debugging rule, configured with every documented parameter, can be evaluated."""

import pytest

from rule_runner.debugger import Rule, rule_configs
from rule_runner.loading.loader import load_builtin
from rule_runner.loading.parameters import bind

# The function of `rule_configs`, the rule, and its documented parameters.
SELECTED = {"collection_names": "losses", "tensor_regex": ".*"}
RULES = [
    ("all_zero", "AllZero", SELECTED | {"threshold": "100"}),
    (
        "check_input_images",
        "CheckInputImages",
        {"threshold_mean": "0.2", "threshold_samples": "500", "regex": ".*input", "channel": "1"},
    ),
    (
        "class_imbalance",
        "ClassImbalance",
        {
            "threshold_imbalance": "10",
            "threshold_misprediction": "0.7",
            "samples": "500",
            "argmax": "False",
            "labels_regex": ".*labels",
            "predictions_regex": ".*predictions",
        },
    ),
    (
        "confusion",
        "Confusion",
        {
            "category_no": "10",
            "labels": "labels",
            "predictions": "predictions",
            "labels_collection": "labels",
            "predictions_collection": "predictions",
            "min_diag": "0.9",
            "max_off_diag": "0.1",
        },
    ),
    ("create_xgboost_report", "CreateXgboostReport", {}),
    (
        "dead_relu",
        "DeadRelu",
        {
            "tensor_regex": ".*relu_output|.*ReLU_output",
            "threshold_inactivity": "1.0",
            "threshold_layer": "50.0",
        },
    ),
    ("exploding_tensor", "ExplodingTensor", SELECTED | {"only_nan": "False"}),
    (
        "feature_importance_overweight",
        "FeatureImportanceOverweight",
        {"threshold": "0.8", "nfeatures": "3", "tensor_regex": ".*feature_importance/weight"},
    ),
    (
        "loss_not_decreasing",
        "LossNotDecreasing",
        SELECTED
        | {
            "use_losses_collection": "True",
            "num_steps": "10",
            "diff_percent": "0.1",
            "increase_threshold_percent": "5",
            "mode": "GLOBAL",
        },
    ),
    (
        "nlp_sequence_ratio",
        "NLPSequenceRatio",
        {
            "tensor_regex": ".*embedding0_input_0",
            "token_values": "0",
            "token_thresholds_percent": "50",
        },
    ),
    (
        "overfit",
        "Overfit",
        {"tensor_regex": ".*", "start_step": "0", "patience": "1", "ratio_threshold": "0.1"},
    ),
    (
        "overtraining",
        "Overtraining",
        {"patience_train": "5", "patience_validation": "10", "delta": "0.01"},
    ),
    (
        "poor_weight_initialization",
        "PoorWeightInitialization",
        {
            "activation_inputs_regex": ".*relu_input|.*ReLU_input",
            "threshold": "10.0",
            "distribution_range": "0.001",
            "patience": "5",
            "steps": "10",
        },
    ),
    (
        "saturated_activation",
        "SaturatedActivation",
        SELECTED
        | {
            "threshold_tanh_min": "-9.4999",
            "threshold_tanh_max": "9.4999",
            "threshold_sigmoid_min": "-23",
            "threshold_sigmoid_max": "16.99999",
            "threshold_inactivity": "1.0",
            "threshold_layer": "50.0",
        },
    ),
    ("similar_across_runs", "SimilarAcrossRuns", SELECTED),
    (
        "stalled_training_rule",
        "StalledTrainingRule",
        {"threshold": "1800", "stop_training_on_fire": "False", "training_job_name_prefix": "job"},
    ),
    (
        "tensor_variance",
        "TensorVariance",
        SELECTED | {"max_threshold": "10", "min_threshold": "0.00001"},
    ),
    ("tree_depth", "TreeDepth", {"depth": "4"}),
    (
        "unchanged_tensor",
        "UnchangedTensor",
        SELECTED | {"num_steps": "3", "rtol": "1e-05", "atol": "1e-08", "equal_nan": "False"},
    ),
    ("vanishing_gradient", "VanishingGradient", {"threshold": "0.0000001"}),
    (
        "weight_update_ratio",
        "WeightUpdateRatio",
        {
            "num_steps": "100",
            "large_threshold": "10.0",
            "small_threshold": "0.00000001",
            "epsilon": "0.000000001",
        },
    ),
]


@pytest.mark.parametrize(("function", "name", "given"), RULES, ids=[one[0] for one in RULES])
def test_a_configured_rule_binds(function: str, name: str, given: dict[str, str]) -> None:
    rule = Rule.sagemaker(getattr(rule_configs, function)(), rule_parameters=given)
    sent = rule.to_debugger_rule_config_dict()["RuleParameters"]
    assert sent == {"rule_to_invoke": name, **given}
    bound = bind(load_builtin(sent.pop("rule_to_invoke")), sent)
    assert (given.keys() - bound.parameters.keys(), bound.warnings) == (set(), ())


def test_the_other_trials_of_a_configured_rule_bind() -> None:
    rule = Rule.sagemaker(
        rule_configs.similar_across_runs(), other_trials_s3_input_paths=["s3://b/one", "s3://b/two"]
    )
    assert rule.rule_parameters == {
        "other_trial_0": "s3://b/one",
        "other_trial_1": "s3://b/two",
        "rule_to_invoke": "SimilarAcrossRuns",
    }
