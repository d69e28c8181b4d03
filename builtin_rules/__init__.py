"""The built-in rules, one file each, and the table of them."""

from types import MappingProxyType
from typing import Final

from builtin_rules.all_zero import AllZero
from builtin_rules.exploding_tensor import ExplodingTensor
from builtin_rules.loss_not_decreasing import LossNotDecreasing
from builtin_rules.vanishing_gradient import VanishingGradient
from smdebug.rules import Rule

RULES: Final = MappingProxyType[str, type[Rule]](
    {
        "AllZero": AllZero,
        "ExplodingTensor": ExplodingTensor,
        "LossNotDecreasing": LossNotDecreasing,
        "VanishingGradient": VanishingGradient,
    }
)

__all__ = ["RULES", "AllZero", "ExplodingTensor", "LossNotDecreasing", "VanishingGradient"]
