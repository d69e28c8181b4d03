"""Consequences: what other rules may say of the faults of these runs, and why."""

from typing import Final

from training.consequences import UNTAUGHT, WORSE

# A part of the batches is broken, or the model is damaged at once.
SHAKEN: Final = WORSE | {
    "RepresentationCollapse": "a damaged model answers alike to all rows",
    "ResumeLostState": "what is learnt is partly lost",
}
# Nothing is learnt, or hardly anything.
IDLE: Final = UNTAUGHT | {
    "GradientNormSpike": "norms are those of noise",
    "LossSpike": "the loss is noise",
    "SaturatedActivation": "saturated units stay as they are",
}
# Numbers are not finite: nothing behind them is of use.
BROKEN: Final = WORSE | IDLE
