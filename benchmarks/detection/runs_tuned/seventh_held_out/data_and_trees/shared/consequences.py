"""Consequences: what other rules may say of the faults of this piece, and why."""

from typing import Final

_CLASSES: Final = ("ClassImbalance", "Confusion")
# Inputs, or numbers that a loss gets, are of another size than they should be.
OFF_SCALE: Final = {
    **dict.fromkeys(_CLASSES, "a network that learns late mispredicts classes"),
    "AllZero": "inputs far from 0 silence units",
    "DeadRelu": "inputs far from 0 silence units",
    "ExplodingTensor": "a loss without a minimum runs away",
    "GradientNormSpike": "gradients jump where the network adapts",
    "LossNotDecreasing": "the loss falls late or not at all",
    "LossSpike": "the loss jumps where the network adapts",
    "NormGrowth": "weights grow to make up for the scale",
    "Overfit": "what little is learnt may be chance",
    "Overtraining": "the loss is level at what it can reach",
    "PoorWeightInitialization": "the first gradients are out of proportion",
    "RepresentationCollapse": "an offset makes what is written of all inputs alike",
    "SaturatedActivation": "inputs far from 0 saturate units",
    "StalledParameters": "silent or saturated units do not move",
    "TensorVariance": "weights grow to make up for the scale",
    "UnchangedTensor": "silent or saturated units do not move",
    "VanishingGradient": "silent units, or chances in place of scores, pass little gradient",
    "WeightUpdateRatio": "updates are out of proportion to the weights",
}
# Rows are learnt by heart, or nothing is left to be learnt.
BY_HEART: Final = {
    **dict.fromkeys(_CLASSES, "what was learnt by heart is wrong for other rows"),
    "AllZero": "gradients are 0 once rows are known by heart",
    "DeadRelu": "units that are no longer needed stay silent",
    "GradientNormSpike": "gradients are tiny but for rows that are new",
    "LossNotDecreasing": "nothing is left to be learnt, or the loss rises where rows are new",
    "LossSpike": "the loss jumps with rows that are new",
    "NormGrowth": "weights grow with certainty",
    "Overfit": "what was learnt by heart is wrong for other rows",
    "Overtraining": "nothing is left to be learnt",
    "SaturatedActivation": "certainty saturates units",
    "StalledParameters": "nothing is left to be learnt",
    "TensorVariance": "weights grow with certainty, or shrink when nothing is left",
    "UnchangedTensor": "nothing is left to be learnt",
    "VanishingGradient": "gradients are tiny when nothing is left",
    "WeightUpdateRatio": "updates are tiny when nothing is left",
}
# What is validated is not what is trained with, or some of it cannot be told.
ELSEWHERE: Final = {
    **dict.fromkeys(_CLASSES, "classes are mispredicted where validation differs"),
    "GradientNormSpike": "gradients jump with rows that contradict others",
    "LossNotDecreasing": "the loss stays up",
    "LossSpike": "the loss jumps where rows differ",
    "Overfit": "validation measures something else than training",
    "Overtraining": "the loss is level at what can be told",
}
