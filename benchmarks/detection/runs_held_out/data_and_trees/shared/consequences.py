"""Consequences: what other rules may say of the faults of this piece, and why."""

from typing import Final

_CLASSES: Final = ("ClassImbalance", "Confusion")
# What a network or a loss is given has another size or offset than it should have.
ILL_SCALED: Final = {
    **dict.fromkeys(_CLASSES, "classes are learnt late or not at all"),
    "AllZero": "an offset silences units",
    "AttentionCollapse": "large inputs sharpen attention, or padding fills it",
    "DeadRelu": "an offset silences units",
    "ExplodingTensor": "a loss without a minimum runs away",
    "GradientNormSpike": "gradients are large until the network has adapted",
    "LossNotDecreasing": "little is learnt, or the loss falls late",
    "LossSpike": "the loss jumps until the network has adapted",
    "NormGrowth": "weights grow to make up for the scale",
    "Overfit": "what little is learnt holds for the rows to train with only",
    "Overtraining": "the loss is level at what can be reached",
    "PoorWeightInitialization": "first gradients are out of proportion",
    "RepresentationCollapse": "an offset makes what is written of all inputs alike",
    "SaturatedActivation": "large inputs saturate units",
    "StalledParameters": "silent or saturated units do not move",
    "TensorVariance": "weights grow to make up for the scale",
    "UnchangedTensor": "silent or saturated units do not move",
    "VanishingGradient": "silent or saturated units pass little gradient",
    "WeightUpdateRatio": "updates are out of proportion to weights",
}
# Rows are learnt by heart, or hardly anything is left to be learnt.
LEARNT_BY_HEART: Final = {
    **dict.fromkeys(_CLASSES, "what is known by heart is wrong for other rows"),
    "AllZero": "gradients are 0 once rows are known",
    "DeadRelu": "units that nothing needs any more fall silent",
    "GradientNormSpike": "gradients are tiny but for a few rows",
    "LossNotDecreasing": "nothing is left to be learnt, or validation gets worse",
    "LossSpike": "a tiny loss jumps at a few rows",
    "NormGrowth": "weights grow with certainty",
    "Overfit": "what is known by heart is wrong for other rows",
    "Overtraining": "nothing is left to be learnt",
    "SaturatedActivation": "certainty saturates units",
    "StalledParameters": "nothing is left to be learnt",
    "TensorVariance": "weights grow with certainty",
    "TreeDepth": "trees grow to tell single rows",
    "UnchangedTensor": "nothing is left to be learnt",
    "VanishingGradient": "gradients are tiny once rows are known",
    "WeightUpdateRatio": "updates are tiny once rows are known",
}
# Some labels cannot be told, or those of validation differ from those to train with.
UNTELLABLE: Final = {
    **dict.fromkeys(_CLASSES, "classes that cannot be told are mispredicted"),
    "GradientNormSpike": "gradients jump with rows that contradict others",
    "LossNotDecreasing": "the loss stays up",
    "LossSpike": "the loss jumps with rows that contradict others",
    "Overfit": "validation measures something else than training",
    "Overtraining": "the loss is level at what can be told",
}
