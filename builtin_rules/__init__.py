"""The built-in rules, one file each, and the table of them."""

from typing import TYPE_CHECKING, Final

from builtin_rules.rules_by_name import RulesByName
from smdebug.rules import Rule

if TYPE_CHECKING:
    from builtin_rules.reports.xgboost.rule import CreateXgboostReport
    from builtin_rules.tensors.activations.attention_collapse import AttentionCollapse
    from builtin_rules.tensors.activations.attention_mask_leak import AttentionMaskLeak
    from builtin_rules.tensors.activations.dead_relu import DeadRelu
    from builtin_rules.tensors.activations.mode_collapse import ModeCollapse
    from builtin_rules.tensors.activations.policy_entropy_collapse import PolicyEntropyCollapse
    from builtin_rules.tensors.activations.posterior_collapse import PosteriorCollapse
    from builtin_rules.tensors.activations.representation_collapse import RepresentationCollapse
    from builtin_rules.tensors.activations.router_collapse import RouterCollapse
    from builtin_rules.tensors.activations.saturated_activation import SaturatedActivation
    from builtin_rules.tensors.data.check_input_images import CheckInputImages
    from builtin_rules.tensors.data.class_imbalance import ClassImbalance
    from builtin_rules.tensors.data.confusion import Confusion
    from builtin_rules.tensors.data.feature_importance_overweight import FeatureImportanceOverweight
    from builtin_rules.tensors.data.nlp_sequence_ratio import NLPSequenceRatio
    from builtin_rules.tensors.data.probabilities_as_logits import ProbabilitiesAsLogits
    from builtin_rules.tensors.data.repeated_batches import RepeatedBatches
    from builtin_rules.tensors.data.tree_depth import TreeDepth
    from builtin_rules.tensors.gradients.all_zero import AllZero
    from builtin_rules.tensors.gradients.exploding_tensor import ExplodingTensor
    from builtin_rules.tensors.gradients.gradient_accumulates import GradientAccumulates
    from builtin_rules.tensors.gradients.tensor_variance import TensorVariance
    from builtin_rules.tensors.gradients.vanishing_gradient import VanishingGradient
    from builtin_rules.tensors.losses.loss_not_decreasing import LossNotDecreasing
    from builtin_rules.tensors.losses.loss_spike import LossSpike
    from builtin_rules.tensors.losses.overfit import Overfit
    from builtin_rules.tensors.losses.overtraining import Overtraining
    from builtin_rules.tensors.losses.stalled_training_rule import StalledTrainingRule
    from builtin_rules.tensors.optimizer.gradient_norm_spike import GradientNormSpike
    from builtin_rules.tensors.optimizer.learning_rate import LearningRate
    from builtin_rules.tensors.optimizer.loss_scale_at_floor import LossScaleAtFloor
    from builtin_rules.tensors.optimizer.resume_lost_state import ResumeLostState
    from builtin_rules.tensors.optimizer.validation_in_training_mode import ValidationInTrainingMode
    from builtin_rules.tensors.weights.norm_growth import NormGrowth
    from builtin_rules.tensors.weights.poor_weight_initialization import PoorWeightInitialization
    from builtin_rules.tensors.weights.replica_divergence import ReplicaDivergence
    from builtin_rules.tensors.weights.similar_across_runs import SimilarAcrossRuns
    from builtin_rules.tensors.weights.stalled_parameters import StalledParameters
    from builtin_rules.tensors.weights.unchanged_tensor import UnchangedTensor
    from builtin_rules.tensors.weights.weight_update_ratio import WeightUpdateRatio

RULES: Final = RulesByName[Rule](
    {
        "AllZero": "tensors.gradients.all_zero",
        "AttentionCollapse": "tensors.activations.attention_collapse",
        "AttentionMaskLeak": "tensors.activations.attention_mask_leak",
        "CheckInputImages": "tensors.data.check_input_images",
        "ClassImbalance": "tensors.data.class_imbalance",
        "Confusion": "tensors.data.confusion",
        "CreateXgboostReport": "reports.xgboost.rule",
        "DeadRelu": "tensors.activations.dead_relu",
        "ExplodingTensor": "tensors.gradients.exploding_tensor",
        "FeatureImportanceOverweight": "tensors.data.feature_importance_overweight",
        "GradientAccumulates": "tensors.gradients.gradient_accumulates",
        "GradientNormSpike": "tensors.optimizer.gradient_norm_spike",
        "LearningRate": "tensors.optimizer.learning_rate",
        "LossNotDecreasing": "tensors.losses.loss_not_decreasing",
        "LossScaleAtFloor": "tensors.optimizer.loss_scale_at_floor",
        "LossSpike": "tensors.losses.loss_spike",
        "ModeCollapse": "tensors.activations.mode_collapse",
        "NLPSequenceRatio": "tensors.data.nlp_sequence_ratio",
        "NormGrowth": "tensors.weights.norm_growth",
        "Overfit": "tensors.losses.overfit",
        "Overtraining": "tensors.losses.overtraining",
        "PolicyEntropyCollapse": "tensors.activations.policy_entropy_collapse",
        "PoorWeightInitialization": "tensors.weights.poor_weight_initialization",
        "PosteriorCollapse": "tensors.activations.posterior_collapse",
        "ProbabilitiesAsLogits": "tensors.data.probabilities_as_logits",
        "RepeatedBatches": "tensors.data.repeated_batches",
        "ReplicaDivergence": "tensors.weights.replica_divergence",
        "RepresentationCollapse": "tensors.activations.representation_collapse",
        "ResumeLostState": "tensors.optimizer.resume_lost_state",
        "RouterCollapse": "tensors.activations.router_collapse",
        "SaturatedActivation": "tensors.activations.saturated_activation",
        "SimilarAcrossRuns": "tensors.weights.similar_across_runs",
        "StalledParameters": "tensors.weights.stalled_parameters",
        "StalledTrainingRule": "tensors.losses.stalled_training_rule",
        "TensorVariance": "tensors.gradients.tensor_variance",
        "TreeDepth": "tensors.data.tree_depth",
        "UnchangedTensor": "tensors.weights.unchanged_tensor",
        "ValidationInTrainingMode": "tensors.optimizer.validation_in_training_mode",
        "VanishingGradient": "tensors.gradients.vanishing_gradient",
        "WeightUpdateRatio": "tensors.weights.weight_update_ratio",
    }
)

__all__ = [
    "RULES",
    "AllZero",
    "AttentionCollapse",
    "AttentionMaskLeak",
    "CheckInputImages",
    "ClassImbalance",
    "Confusion",
    "CreateXgboostReport",
    "DeadRelu",
    "ExplodingTensor",
    "FeatureImportanceOverweight",
    "GradientAccumulates",
    "GradientNormSpike",
    "LearningRate",
    "LossNotDecreasing",
    "LossScaleAtFloor",
    "LossSpike",
    "ModeCollapse",
    "NLPSequenceRatio",
    "NormGrowth",
    "Overfit",
    "Overtraining",
    "PolicyEntropyCollapse",
    "PoorWeightInitialization",
    "PosteriorCollapse",
    "ProbabilitiesAsLogits",
    "RepeatedBatches",
    "ReplicaDivergence",
    "RepresentationCollapse",
    "ResumeLostState",
    "RouterCollapse",
    "SaturatedActivation",
    "SimilarAcrossRuns",
    "StalledParameters",
    "StalledTrainingRule",
    "TensorVariance",
    "TreeDepth",
    "UnchangedTensor",
    "ValidationInTrainingMode",
    "VanishingGradient",
    "WeightUpdateRatio",
]


def __getattr__(name: str) -> type[Rule]:
    return RULES.attribute(__name__, name)
