"""Consequences: what other rules may find where what is given out is the same for all rows."""

from typing import Final

from training.consequences import UNTAUGHT, WORSE

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
