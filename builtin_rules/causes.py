"""Causes: which rules find what may bring about the findings of other rules."""

from typing import Final

# What a group finds may bring about what every later group finds.
CAUSES: Final = (
    (
        "ResumeLostState",
        "ValidationInTrainingMode",
        "ReplicaDivergence",
        "GradientAccumulates",
        "ProbabilitiesAsLogits",
        "AttentionMaskLeak",
        "RepeatedBatches",
    ),
    ("LearningRate", "LossScaleAtFloor"),
    (
        "RepresentationCollapse",
        "PosteriorCollapse",
        "ModeCollapse",
        "RouterCollapse",
        "PolicyEntropyCollapse",
    ),
    ("GradientNormSpike", "LossSpike", "WeightUpdateRatio", "NormGrowth", "AttentionCollapse"),
    ("ExplodingTensor",),
    ("DeadRelu", "SaturatedActivation"),
    ("StalledParameters",),
    (
        "TensorVariance",
        "VanishingGradient",
        "AllZero",
        "UnchangedTensor",
        "PoorWeightInitialization",
    ),
    ("LossNotDecreasing", "RewardNotIncreasing"),
    ("Confusion", "Overfit", "Overtraining", "ClassImbalance"),
)
# What these find neither brings about a finding of another rule nor follows from one.
APART: Final = frozenset(
    {
        "CheckInputImages",
        "FeatureImportanceOverweight",
        "NLPSequenceRatio",
        "SimilarAcrossRuns",
        "StalledTrainingRule",
        "TreeDepth",
    }
)
_RANKS: Final = {name: rank for rank, group in enumerate(CAUSES) for name in group}


def cause_rank(rule: str) -> int | None:
    """Return the place of a rule in the order of causes, 0 first; None if it stands apart."""
    return _RANKS.get(rule)
