"""Causes: which rules find what may bring about the findings of other rules."""

from typing import Final

# What a group finds may bring about what every later group finds. A rule in no group stands apart:
# its findings neither bring about those of another rule nor follow from them.
CAUSES: Final = (
    (
        "ResumeLostState",
        "ValidationInTrainingMode",
        "ReplicaDivergence",
        "GradientAccumulates",
        "ProbabilitiesAsLogits",
        "AttentionMaskLeak",
        "RepeatedBatches",
        "ParametersWithoutOptimizer",
        "MaskedOrShiftedLabels",
        "BroadcastTargets",
    ),
    ("LearningRate", "LossScaleAtFloor", "NoLearningSignal"),
    (
        "RepresentationCollapse",
        "PosteriorCollapse",
        "ModeCollapse",
        "RouterCollapse",
        "PolicyEntropyCollapse",
        "PolicyDrift",
    ),
    ("GradientNormSpike", "LossSpike", "WeightUpdateRatio", "NormGrowth", "AttentionCollapse"),
    ("ExplodingTensor",),
    ("DeadRelu", "SaturatedActivation"),
    ("GradientNormZero",),
    ("StalledParameters",),
    (
        "TensorVariance",
        "VanishingGradient",
        "AllZero",
        "UnchangedTensor",
        "PoorWeightInitialization",
    ),
    ("LossNotDecreasing", "RewardNotIncreasing", "MetricNotImproving"),
    ("Confusion", "Overfit", "Overtraining", "ClassImbalance"),
)
_RANKS: Final = {name: rank for rank, group in enumerate(CAUSES) for name in group}


def cause_rank(rule: str) -> int | None:
    """Return the place of a rule in the order of causes, 0 first; None if it stands apart."""
    return _RANKS.get(rule)
