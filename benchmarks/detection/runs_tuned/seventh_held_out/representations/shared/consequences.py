"""Consequences: what other rules may find where outputs are alike or a policy is fixed."""

from typing import Final

from training.consequences import UNTAUGHT, WORSE

ALIKE: Final = (
    UNTAUGHT
    | WORSE
    | {
        "GradientNormSpike": "the loss moves to another level, and its gradients with it",
        "LossSpike": "the loss moves to another level",
        "ModeCollapse": "what is generated is the same for all rows",
        "PosteriorCollapse": "codes are the same for all rows",
        "RepresentationCollapse": "embeddings are the same for all rows",
    }
)
