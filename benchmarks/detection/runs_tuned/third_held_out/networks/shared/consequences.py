"""Consequences: what other rules may say of a fault of these runs, and why."""

from typing import Final

# Updates or inputs get out of hand, and the model is damaged for a while or for good.
DAMAGED: Final = {
    "AllZero": "damaged units are silent for all rows",
    "ClassImbalance": "a damaged model mispredicts classes",
    "Confusion": "a damaged model mispredicts classes",
    "DeadRelu": "large weights or shifts silence units",
    "ExplodingTensor": "numbers may run over",
    "GradientNormSpike": "gradients jump with the loss",
    "LossNotDecreasing": "the loss rises, or does not come down again",
    "LossSpike": "the loss jumps",
    "NormGrowth": "weights grow by large updates",
    "Overfit": "both losses are out of hand, and differ",
    "Overtraining": "the loss gets no better than it was before",
    "PoorWeightInitialization": "it happens within the first saved steps",
    "SaturatedActivation": "large weights saturate units",
    "StalledParameters": "nothing moves behind silent units",
    "TensorVariance": "weights have grown or shrunk",
    "UnchangedTensor": "nothing moves behind silent units",
    "VanishingGradient": "no gradient passes silent units",
    "WeightUpdateRatio": "updates are large beside the weights, or nothing at all",
}
# The model, or a part of it, learns nothing.
IDLE: Final = {
    "AllZero": "what is cut off is zero to the last bit",
    "ClassImbalance": "what is not learnt is mispredicted",
    "Confusion": "what is not learnt is mispredicted",
    "DeadRelu": "units that do not learn may be silent",
    "LossNotDecreasing": "the loss stays up, or is level at once",
    "Overfit": "what little is learnt does not hold for other rows",
    "Overtraining": "the loss is level from early on",
    "PoorWeightInitialization": "gradients are tiny from the first steps on",
    "StalledParameters": "what gets no gradient does not move",
    "TensorVariance": "weights without a gradient only shrink",
    "UnchangedTensor": "what gets no gradient does not move",
    "VanishingGradient": "gradients are tiny, or zero",
    "WeightUpdateRatio": "updates are tiny, or zero",
}
# All that can be learnt is learnt, or learnt by heart.
KNOWN: Final = {
    "ClassImbalance": "what was learnt by heart does not hold for other rows",
    "Confusion": "what was learnt by heart does not hold for other rows",
    "LossNotDecreasing": "the loss is level once all is known",
    "NormGrowth": "weights grow with certainty",
    "Overfit": "what was learnt by heart does not hold for other rows",
    "Overtraining": "no loss gets better once all is known",
    "UnchangedTensor": "hardly anything moves once all is known",
    "VanishingGradient": "gradients are tiny once all is known",
    "WeightUpdateRatio": "hardly anything moves once all is known",
}
# Predictions or labels of an evaluation are not those of the training.
OTHERWISE: Final = {
    "ClassImbalance": "a class is mispredicted by what differs",
    "Confusion": "a class is mispredicted by what differs",
    "GradientNormSpike": "gradients change with what differs",
    "LossNotDecreasing": "the loss stays up with what differs",
    "LossSpike": "the loss jumps with what differs",
    "Overfit": "validation measures something else than training",
    "Overtraining": "validation gets no better",
}
