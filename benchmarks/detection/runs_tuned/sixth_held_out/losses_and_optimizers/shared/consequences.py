"""Consequences: what else may be said of a fault, and why."""

from typing import Final

# What has grown too large, for a while or for good.
UPSET: Final = {
    "AllZero": "a unit that a large update has silenced writes zeros",
    "AttentionCollapse": "large scores leave one place of attention",
    "DeadRelu": "large updates silence units",
    "ExplodingTensor": "numbers may run over",
    "GradientNormSpike": "a worse loss has larger gradients",
    "LossNotDecreasing": "the loss goes up, or stays where it is",
    "LossSpike": "the loss goes up at once",
    "NormGrowth": "large updates add to the length of weights",
    "Overfit": "training and validation part where the model is damaged",
    "Overtraining": "the best loss is not reached again",
    "PoorWeightInitialization": "the damage is there from the first steps on",
    "RepresentationCollapse": "a damaged model writes the same for all rows",
    "SaturatedActivation": "large weights saturate units",
    "StalledParameters": "saturated layers hardly move",
    "TensorVariance": "the spread of weights changes with their size",
    "UnchangedTensor": "saturated layers do not move",
    "VanishingGradient": "saturated layers pass hardly a gradient on",
    "WeightUpdateRatio": "updates are too large, or too small beside weights that are large",
}
# What hardly learns.
STUCK: Final = {
    "AllZero": "what does not learn has gradients of zero",
    "AttentionCollapse": "attention stays as it was at first",
    "DeadRelu": "silent units stay silent",
    "LossNotDecreasing": "the loss does not fall",
    "LossSpike": "the loss is nothing but noise",
    "Overfit": "at most chance is learnt",
    "Overtraining": "the loss does not fall",
    "PoorWeightInitialization": "gradients are small from the start",
    "RepresentationCollapse": "each row gets the same answer",
    "SaturatedActivation": "saturated units stay so",
    "StalledParameters": "weights hardly move",
    "TensorVariance": "weights stay as they were drawn, or shrink",
    "UnchangedTensor": "weights stand still",
    "VanishingGradient": "hardly a gradient is left",
    "WeightUpdateRatio": "updates are tiny",
}
