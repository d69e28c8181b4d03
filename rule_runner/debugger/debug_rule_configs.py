"""Base configurations of the built-in debugging rules: one function for each rule."""

from typing import Any, Final

BaseConfig = dict[str, Any]

_Parameters = dict[str, str]
_EVERY_5: Final = {"save_interval": "5"}
_EVERY_500: Final = {"save_interval": "500"}
_COLLECTIONS: Final[dict[str, _Parameters]] = {
    "gradients": _EVERY_500,
    "input_image": {"include_regex": ".*hybridsequential0_input_0", **_EVERY_500},
    "input_sequence": {"include_regex": ".*embedding0_input_0", **_EVERY_500},
    "losses": _EVERY_500,
    "relu_input": {"include_regex": ".*relu_input", **_EVERY_500},
    "relu_output": {"include_regex": ".*relu_output", **_EVERY_500},
    "weights": _EVERY_500,
}
# The SDK omits the names of these two, and users may rely on it.
_NAMELESS: Final = {"relu_input", "relu_output"}


def get_collection(collection_name: str) -> dict[str, Any] | None:
    """Return the configuration of a collection that debugging rules use, or None.

    As in the SDK, that of `relu_input` and of `relu_output` is the parameters alone.
    """
    parameters = _COLLECTIONS.get(collection_name)
    if parameters is None:
        return None
    return dict(parameters) if collection_name in _NAMELESS else _named(collection_name, parameters)


def all_zero() -> BaseConfig:
    """Configure AllZero: tensors hold too many zeros."""
    return _config("AllZero")


def check_input_images() -> BaseConfig:
    """Configure CheckInputImages: images are not normalised."""
    return _config("CheckInputImages", input_image=_COLLECTIONS["input_image"])


def class_imbalance() -> BaseConfig:
    """Configure ClassImbalance: classes are unevenly frequent, or unevenly well predicted."""
    return _config("ClassImbalance")


def confusion() -> BaseConfig:
    """Configure Confusion: the confusion matrix is bad somewhere."""
    return _config("Confusion")


def create_xgboost_report() -> BaseConfig:
    """Configure CreateXgboostReport: a report on a training with XGBoost."""
    return _config(
        "CreateXgboostReport",
        metrics=_EVERY_5,
        feature_importance=_EVERY_5,
        hyperparameters={"save_steps": "0"},
        predictions=_EVERY_5,
        labels=_EVERY_5,
    )


def dead_relu() -> BaseConfig:
    """Configure DeadRelu: too many rectifiers answer zero."""
    return _config("DeadRelu", relu_output=_COLLECTIONS["relu_output"])


def exploding_tensor() -> BaseConfig:
    """Configure ExplodingTensor: tensors hold NaN or infinity."""
    return _config("ExplodingTensor")


def feature_importance_overweight() -> BaseConfig:
    """Configure FeatureImportanceOverweight: few features weigh too much."""
    return _config("FeatureImportanceOverweight", feature_importance=_EVERY_500)


def loss_not_decreasing() -> BaseConfig:
    """Configure LossNotDecreasing: the loss does not fall."""
    return _config("LossNotDecreasing", losses=_COLLECTIONS["losses"])


def nlp_sequence_ratio() -> BaseConfig:
    """Configure NLPSequenceRatio: tokens are unevenly frequent in sequences."""
    return _config("NLPSequenceRatio", input_sequence=_COLLECTIONS["input_sequence"])


def overfit() -> BaseConfig:
    """Configure Overfit: validation and training losses part."""
    return _config("Overfit")


def overtraining() -> BaseConfig:
    """Configure Overtraining: training goes on though the losses improve no more."""
    return _config("Overtraining")


def poor_weight_initialization() -> BaseConfig:
    """Configure PoorWeightInitialization: the weights began badly."""
    return _config("PoorWeightInitialization", relu_input=_COLLECTIONS["relu_input"])


def saturated_activation() -> BaseConfig:
    """Configure SaturatedActivation: too many activations are at their ends."""
    return _config("SaturatedActivation")


def similar_across_runs() -> BaseConfig:
    """Configure SimilarAcrossRuns: tensors equal those of another trial."""
    return _config("SimilarAcrossRuns")


def stalled_training_rule() -> BaseConfig:
    """Configure StalledTrainingRule: the training saves nothing more."""
    return _config("StalledTrainingRule")


def tensor_variance() -> BaseConfig:
    """Configure TensorVariance: variances are too high or too low."""
    return _config("TensorVariance")


def tree_depth() -> BaseConfig:
    """Configure TreeDepth: trees are too deep."""
    return _config("TreeDepth")


def unchanged_tensor() -> BaseConfig:
    """Configure UnchangedTensor: tensors stay as they are."""
    return _config("UnchangedTensor")


def vanishing_gradient() -> BaseConfig:
    """Configure VanishingGradient: gradients are too small."""
    return _config("VanishingGradient", gradients=_COLLECTIONS["gradients"])


def weight_update_ratio() -> BaseConfig:
    """Configure WeightUpdateRatio: updates of weights are too large or too small."""
    return _config("WeightUpdateRatio", weights=_COLLECTIONS["weights"])


def _config(rule: str, **collections: _Parameters) -> BaseConfig:
    config: BaseConfig = {
        "DebugRuleConfiguration": {
            "RuleConfigurationName": rule,
            "RuleParameters": {"rule_to_invoke": rule},
        }
    }
    if collections:
        named = [_named(name, parameters) for name, parameters in collections.items()]
        config["CollectionConfigurations"] = named
    return config


def _named(name: str, parameters: _Parameters) -> dict[str, Any]:
    return {"CollectionName": name, "CollectionParameters": dict(parameters)}
