"""The built-in rules, one file each, and the table of them."""

from typing import Any, Final

from builtin_rules.rules_by_name import RulesByName
from smdebug.rules import Rule

RULES: Final = RulesByName[Rule](
    {
        "AllZero": "tensors.gradients.all_zero",
        "AttentionCollapse": "tensors.activations.attention_collapse",
        "AttentionMaskLeak": "tensors.activations.attention_mask_leak",
        "Baseline": "tensors.losses.baseline",
        "BroadcastTargets": "tensors.data.broadcast_targets",
        "CheckInputImages": "tensors.data.check_input_images",
        "ClassImbalance": "tensors.data.class_imbalance",
        "Confusion": "tensors.data.confusion",
        "CreateXgboostReport": "reports.xgboost.rule",
        "DeadRelu": "tensors.activations.dead_relu",
        "ExplodingTensor": "tensors.gradients.exploding_tensor",
        "FeatureImportanceOverweight": "tensors.data.feature_importance_overweight",
        "GradientAccumulates": "tensors.gradients.gradient_accumulates",
        "GradientNormSpike": "tensors.optimizer.gradient_norm_spike",
        "GradientNormZero": "tensors.optimizer.gradient_norm_zero",
        "LearningRate": "tensors.optimizer.learning_rate",
        "LossNotDecreasing": "tensors.losses.loss_not_decreasing",
        "LossScaleAtFloor": "tensors.optimizer.loss_scale_at_floor",
        "LossSpike": "tensors.losses.loss_spike",
        "MaskedOrShiftedLabels": "tensors.data.masked_or_shifted_labels",
        "MetricNotImproving": "tensors.losses.metric_not_improving",
        "ModeCollapse": "tensors.activations.mode_collapse",
        "NLPSequenceRatio": "tensors.data.nlp_sequence_ratio",
        "NoLearningSignal": "tensors.losses.no_learning_signal",
        "NormGrowth": "tensors.weights.norm_growth",
        "Overfit": "tensors.losses.overfit",
        "Overtraining": "tensors.losses.overtraining",
        "ParametersWithoutOptimizer": "tensors.optimizer.parameters_without_optimizer",
        "PolicyDrift": "tensors.losses.policy_drift",
        "PolicyEntropyCollapse": "tensors.activations.policy_entropy_collapse",
        "PoorWeightInitialization": "tensors.weights.poor_weight_initialization",
        "PosteriorCollapse": "tensors.activations.posterior_collapse",
        "ProbabilitiesAsLogits": "tensors.data.probabilities_as_logits",
        "RepeatedBatches": "tensors.data.repeated_batches",
        "ReplicaDivergence": "tensors.weights.replica_divergence",
        "RepresentationCollapse": "tensors.activations.representation_collapse",
        "ResumeLostState": "tensors.optimizer.resume_lost_state",
        "RewardNotIncreasing": "tensors.losses.reward_not_increasing",
        "RouterCollapse": "tensors.activations.router_collapse",
        "SaturatedActivation": "tensors.activations.saturated_activation",
        "SimilarAcrossRuns": "tensors.weights.similar_across_runs",
        "StalledParameters": "tensors.weights.stalled_parameters",
        "StalledTrainingRule": "tensors.losses.stalled_training_rule",
        "TensorVariance": "tensors.gradients.tensor_variance",
        "ThroughputDrop": "tensors.losses.throughput_drop",
        "TreeDepth": "tensors.data.tree_depth",
        "UnchangedTensor": "tensors.weights.unchanged_tensor",
        "ValidationInTrainingMode": "tensors.optimizer.validation_in_training_mode",
        "VanishingGradient": "tensors.gradients.vanishing_gradient",
        "WeightUpdateRatio": "tensors.weights.weight_update_ratio",
    }
)


def __getattr__(name: str) -> Any:
    return RULES.attribute(__name__, name)
