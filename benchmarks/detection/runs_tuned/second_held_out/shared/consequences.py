"""Consequences: what other rules may say of a fault of the second held-out part, and why."""

from typing import Final

# The model does worse for a while or for good, or numbers get out of hand.
SHAKEN: Final = {
    "AllZero": "units are pushed below zero for good",
    "AttentionCollapse": "large weights sharpen attention",
    "ClassImbalance": "classes are mispredicted by a damaged model",
    "Confusion": "classes are mispredicted by a damaged model",
    "DeadRelu": "large updates push units below zero for good",
    "ExplodingTensor": "numbers may run over",
    "GradientNormSpike": "a worse loss has larger gradients",
    "LossNotDecreasing": "the loss rises, or comes down no more",
    "LossSpike": "the loss jumps",
    "NormGrowth": "large updates make large weights",
    "Overfit": "both losses are out of hand, and differ",
    "Overtraining": "the loss gets no better than it was",
    "PoorWeightInitialization": "the first steps damage the model",
    "SaturatedActivation": "large weights saturate units",
    "StalledParameters": "behind dead or saturated units nothing moves",
    "TensorVariance": "weights have grown, or shrunk",
    "UnchangedTensor": "behind dead or saturated units nothing moves",
    "VanishingGradient": "behind dead or saturated units there is no gradient",
    "WeightUpdateRatio": "updates are large beside the weights, or nothing",
}
# A part of the model, or all of it, does not learn.
IDLE: Final = {
    "AllZero": "gradients, outputs or weights are zero to the last bit",
    "ClassImbalance": "what is not learnt is mispredicted",
    "Confusion": "what is not learnt is mispredicted",
    "DeadRelu": "units of the part that does not learn are silent",
    "FeatureImportanceOverweight": "hardly any feature is used",
    "LossNotDecreasing": "the loss stays up, or is level at once",
    "Overfit": "what little is learnt does not hold for other rows",
    "Overtraining": "the loss is level",
    "PoorWeightInitialization": "gradients are tiny from the first steps on",
    "StalledParameters": "what gets no gradient does not move",
    "TensorVariance": "weights that are not used shrink, or stay constant",
    "UnchangedTensor": "what gets no gradient does not move",
    "VanishingGradient": "gradients are zero or tiny",
    "WeightUpdateRatio": "updates are zero or tiny",
}
# The answer is at hand, or is learnt by heart.
EASY: Final = {
    "AttentionCollapse": "copying needs a single position",
    "ClassImbalance": "what was learnt by heart does not hold for other rows",
    "Confusion": "what was learnt by heart does not hold for other rows",
    "LossNotDecreasing": "once all is known the loss is level",
    "NormGrowth": "certainty lets weights grow",
    "Overfit": "what was learnt does not hold for other rows",
    "Overtraining": "once all is known no loss gets better",
    "UnchangedTensor": "once all is known hardly anything moves",
    "VanishingGradient": "once all is known gradients are tiny",
    "WeightUpdateRatio": "once all is known hardly anything moves",
}
# Validation measures something else than training.
UNLIKE: Final = {
    "ClassImbalance": "validation is worse than the model",
    "Confusion": "validation is worse than the model",
    "LossNotDecreasing": "the loss changes with the mode",
    "LossSpike": "the loss changes with the mode",
    "GradientNormSpike": "gradients change with the mode",
    "Overfit": "training and validation are not measured alike",
    "Overtraining": "validation gets no better",
}
