"""The built-in rules, one file each, and the table of them."""

from types import MappingProxyType
from typing import Final

from builtin_rules.all_zero import AllZero
from builtin_rules.check_input_images import CheckInputImages
from builtin_rules.class_imbalance import ClassImbalance
from builtin_rules.confusion import Confusion
from builtin_rules.create_xgboost_report import CreateXgboostReport
from builtin_rules.dead_relu import DeadRelu
from builtin_rules.exploding_tensor import ExplodingTensor
from builtin_rules.feature_importance_overweight import FeatureImportanceOverweight
from builtin_rules.loss_not_decreasing import LossNotDecreasing
from builtin_rules.nlp_sequence_ratio import NLPSequenceRatio
from builtin_rules.overfit import Overfit
from builtin_rules.overtraining import Overtraining
from builtin_rules.poor_weight_initialization import PoorWeightInitialization
from builtin_rules.saturated_activation import SaturatedActivation
from builtin_rules.similar_across_runs import SimilarAcrossRuns
from builtin_rules.stalled_training_rule import StalledTrainingRule
from builtin_rules.tensor_variance import TensorVariance
from builtin_rules.tree_depth import TreeDepth
from builtin_rules.unchanged_tensor import UnchangedTensor
from builtin_rules.vanishing_gradient import VanishingGradient
from builtin_rules.weight_update_ratio import WeightUpdateRatio
from smdebug.rules import Rule

RULES: Final = MappingProxyType[str, type[Rule]](
    {
        "AllZero": AllZero,
        "CheckInputImages": CheckInputImages,
        "ClassImbalance": ClassImbalance,
        "Confusion": Confusion,
        "CreateXgboostReport": CreateXgboostReport,
        "DeadRelu": DeadRelu,
        "ExplodingTensor": ExplodingTensor,
        "FeatureImportanceOverweight": FeatureImportanceOverweight,
        "LossNotDecreasing": LossNotDecreasing,
        "NLPSequenceRatio": NLPSequenceRatio,
        "Overfit": Overfit,
        "Overtraining": Overtraining,
        "PoorWeightInitialization": PoorWeightInitialization,
        "SaturatedActivation": SaturatedActivation,
        "SimilarAcrossRuns": SimilarAcrossRuns,
        "StalledTrainingRule": StalledTrainingRule,
        "TensorVariance": TensorVariance,
        "TreeDepth": TreeDepth,
        "UnchangedTensor": UnchangedTensor,
        "VanishingGradient": VanishingGradient,
        "WeightUpdateRatio": WeightUpdateRatio,
    }
)

__all__ = [
    "RULES",
    "AllZero",
    "CheckInputImages",
    "ClassImbalance",
    "Confusion",
    "CreateXgboostReport",
    "DeadRelu",
    "ExplodingTensor",
    "FeatureImportanceOverweight",
    "LossNotDecreasing",
    "NLPSequenceRatio",
    "Overfit",
    "Overtraining",
    "PoorWeightInitialization",
    "SaturatedActivation",
    "SimilarAcrossRuns",
    "StalledTrainingRule",
    "TensorVariance",
    "TreeDepth",
    "UnchangedTensor",
    "VanishingGradient",
    "WeightUpdateRatio",
]
