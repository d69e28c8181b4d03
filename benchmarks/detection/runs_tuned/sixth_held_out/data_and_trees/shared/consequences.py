"""Consequences: what other rules may say of a fault of these runs, and why."""

from typing import Final

_CLASSES: Final = ("ClassImbalance", "Confusion")
# The network gets inputs, or a loss gets outputs, of another size: it learns late or unevenly.
OFF_SIZE: Final = {
    **dict.fromkeys(_CLASSES, "classes are mispredicted by a network that learns late"),
    "AllZero": "inputs far off their centre silence units",
    "DeadRelu": "inputs far off their centre silence units",
    "ExplodingTensor": "a loss without a minimum runs away",
    "GradientNormSpike": "gradients jump when the network begins to learn",
    "LossNotDecreasing": "the loss stays up for long",
    "LossSpike": "the loss jumps while the network adapts",
    "NormGrowth": "weights grow to make up for the size",
    "Overfit": "what little is learnt may be chance",
    "Overtraining": "the loss is level where it can get no better",
    "PoorWeightInitialization": "the first gradients are out of proportion",
    "RepresentationCollapse": "what is written of all inputs is alike beside their offset",
    "SaturatedActivation": "inputs far off their centre saturate units",
    "StalledParameters": "silent or saturated units do not move",
    "TensorVariance": "weights grow to make up for the size",
    "UnchangedTensor": "silent or saturated units do not move",
    "VanishingGradient": "silent units and chances pass little gradient",
    "WeightUpdateRatio": "updates are out of proportion to weights",
}
# Rows are few, wrong, or come again and again: they are learnt by heart, or nothing is left.
LEARNT_OFF: Final = {
    **dict.fromkeys(_CLASSES, "what was learnt by heart is wrong for other rows"),
    "GradientNormSpike": "gradients are tiny but for rows that are new or wrong",
    "LossNotDecreasing": "the loss is level, or rises where rows are new",
    "LossSpike": "the loss jumps with rows that are new or wrong",
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
# Validation is not what training was made for.
ELSEWHERE: Final = {
    **dict.fromkeys(_CLASSES, "classes are mispredicted where validation differs"),
    "GradientNormSpike": "gradients jump with what differs",
    "LossNotDecreasing": "the validation loss stays up",
    "LossSpike": "the loss jumps with what differs",
    "Overfit": "validation measures something else than training",
    "Overtraining": "validation gets no better while training is ready",
}
