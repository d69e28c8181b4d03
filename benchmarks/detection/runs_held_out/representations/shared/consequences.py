"""Consequences: what other rules may say of these faults, and why."""

from typing import Final

from training.consequences import COPIED, UNTAUGHT, WORSE

# All rows get the same answer, and what lies behind it learns nothing.
ALIKE: Final = (
    UNTAUGHT
    | WORSE
    | {
        "GradientNormSpike": "the loss moves to another level, and its gradients with it",
        "LossSpike": "the loss moves to another level",
        "ModeCollapse": "what is written is the same for all rows",
        "PosteriorCollapse": "codes are the same for all rows",
        "RepresentationCollapse": "embeddings are the same for all rows",
    }
)
# Attention to a single place: scores are large, and hardly a gradient is left.
SHARP: Final = WORSE | UNTAUGHT
# The next word is seen.
SEEN: Final = COPIED | {"Overfit": "the answer is copied, in training and validation"}
# Some experts are never used.
IDLE: Final = UNTAUGHT | WORSE
# A policy that always does the same learns no more.
FIXED: Final = UNTAUGHT | WORSE | {"RepeatedBatches": "the same places are seen again and again"}
# Workers train different models.
APART: Final = {
    "GradientNormSpike": "gradients are those of another model",
    "LossNotDecreasing": "averaged gradients fit no model",
    "LossSpike": "averaged gradients fit no model",
    "NormGrowth": "parameters wander",
    "Overtraining": "averaged gradients fit no model",
    "ResumeLostState": "workers have different rates",
    "StalledParameters": "a worker hardly moves",
    "UnchangedTensor": "a worker hardly moves",
    "VanishingGradient": "averaged gradients cancel",
    "WeightUpdateRatio": "a worker hardly moves, or moves too far",
}
