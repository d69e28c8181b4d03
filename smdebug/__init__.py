"""The names of smdebug, re-exported for rules and scripts that import them."""

from typing import TYPE_CHECKING, Any, Final

from rule_core.model.collection import Collection, CollectionKeys
from rule_core.model.reduction_config import ReductionConfig
from rule_core.model.save_config import SaveConfig, SaveConfigMode
from rule_core.modes import modes

if TYPE_CHECKING:
    from rule_core.trials.create_trial import create_trial

__all__ = [
    "Collection",
    "CollectionKeys",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "__version__",
    "create_trial",
    "modes",
]

# The version of smdebug that these modules are compatible with.
__version__: Final = "1.0.34"


def __getattr__(name: str) -> Any:
    """Import trials on first use, because training scripts need none."""
    if name == "create_trial":
        from rule_core.trials.create_trial import create_trial

        return create_trial
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
