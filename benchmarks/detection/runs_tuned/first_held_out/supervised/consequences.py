"""Consequences of faults: what other rules may find in the held-out supervised runs, and why."""

from typing import Final

# Nothing, or not enough, is learnt.
NOT_LEARNT: Final = {
    "Confusion": "what was not learnt is confused",
    "ClassImbalance": "classes that were not learnt are always mispredicted",
    "LossNotDecreasing": "what is not learnt keeps the loss up",
    "Overtraining": "a loss that is level does not get better",
    "PoorWeightInitialization": "the first gradients are tiny, or the loss does not fall at first",
}
# Parts of the model stand still.
STILL: Final = {
    "UnchangedTensor": "weights that stand still",
    "WeightUpdateRatio": "weights that stand still",
    "StalledParameters": "weights that stand still while others move",
    "VanishingGradient": "no gradient arrives",
    "AllZero": "gradients or outputs are zero to the last bit",
    "PoorWeightInitialization": "gradients of nothing from the first steps on",
}
# Numbers are out of hand.
OUT_OF_HAND: Final = {
    "Confusion": "nothing is learnt any more",
    "ClassImbalance": "all is taken for one class",
    "LossNotDecreasing": "the loss rises, or stays high",
    "LossSpike": "the loss jumps",
    "GradientNormSpike": "gradients of a loss that is out of hand",
    "WeightUpdateRatio": "updates are larger than weights, or dead weights stand still",
    "TensorVariance": "weights have grown",
    "NormGrowth": "weights grow",
    "DeadRelu": "large updates push units below zero for good",
    "SaturatedActivation": "large weights and inputs",
    "VanishingGradient": "behind dead or saturated units there is no gradient",
    "AllZero": "gradients and outputs of dead layers",
    "UnchangedTensor": "weights behind dead units, or that are not numbers, move no more",
    "StalledParameters": "weights behind dead units move no more",
    "PoorWeightInitialization": "the first losses and gradients are of another scale",
    "Overtraining": "the loss does not come down again",
    "Overfit": "both losses are out of hand, and differ",
    "ExplodingTensor": "numbers run over",
}
# The training data are learnt by heart.
BY_HEART: Final = {
    "Overtraining": "neither loss gets better any more",
    "Confusion": "what was learnt by heart does not hold for other data",
    "ClassImbalance": "what was learnt by heart does not hold for other data",
    "LossNotDecreasing": "the training loss is as low as it gets",
    "UnchangedTensor": "once all is learnt hardly anything moves",
    "WeightUpdateRatio": "once all is learnt hardly anything moves",
    "VanishingGradient": "once all is learnt gradients are tiny",
    "NormGrowth": "certainty lets weights grow",
}
