"""The built-in rules, one file each, and the table of them."""

from types import MappingProxyType
from typing import Final

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
from smdebug.rules import Rule

RULES: Final = MappingProxyType[str, type[Rule]](
    {
        "AllZero": AllZero,
        "AttentionCollapse": AttentionCollapse,
        "AttentionMaskLeak": AttentionMaskLeak,
        "CheckInputImages": CheckInputImages,
        "ClassImbalance": ClassImbalance,
        "Confusion": Confusion,
        "CreateXgboostReport": CreateXgboostReport,
        "DeadRelu": DeadRelu,
        "ExplodingTensor": ExplodingTensor,
        "FeatureImportanceOverweight": FeatureImportanceOverweight,
        "GradientAccumulates": GradientAccumulates,
        "GradientNormSpike": GradientNormSpike,
        "LearningRate": LearningRate,
        "LossNotDecreasing": LossNotDecreasing,
        "LossScaleAtFloor": LossScaleAtFloor,
        "LossSpike": LossSpike,
        "ModeCollapse": ModeCollapse,
        "NLPSequenceRatio": NLPSequenceRatio,
        "NormGrowth": NormGrowth,
        "Overfit": Overfit,
        "Overtraining": Overtraining,
        "PolicyEntropyCollapse": PolicyEntropyCollapse,
        "PoorWeightInitialization": PoorWeightInitialization,
        "PosteriorCollapse": PosteriorCollapse,
        "ProbabilitiesAsLogits": ProbabilitiesAsLogits,
        "RepeatedBatches": RepeatedBatches,
        "ReplicaDivergence": ReplicaDivergence,
        "RepresentationCollapse": RepresentationCollapse,
        "ResumeLostState": ResumeLostState,
        "RouterCollapse": RouterCollapse,
        "SaturatedActivation": SaturatedActivation,
        "SimilarAcrossRuns": SimilarAcrossRuns,
        "StalledParameters": StalledParameters,
        "StalledTrainingRule": StalledTrainingRule,
        "TensorVariance": TensorVariance,
        "TreeDepth": TreeDepth,
        "UnchangedTensor": UnchangedTensor,
        "ValidationInTrainingMode": ValidationInTrainingMode,
        "VanishingGradient": VanishingGradient,
        "WeightUpdateRatio": WeightUpdateRatio,
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
