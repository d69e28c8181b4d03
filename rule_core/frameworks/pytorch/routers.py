"""Routers of mixtures of experts: which modules are one, and the load of each expert."""

import re
from typing import Any, Final

import torch

ROUTER_NAME: Final = re.compile(
    r"(?:^|[._])(?:gate|gating|router|switch)$|(?:gate|router)_network$"
)
ROUTER_CLASS: Final = re.compile(r"Router|Gat(?:e|ing)")
EXPERTS: Final = re.compile(r"experts?(?:_|$)")
CHOICES: Final = ("top_k", "topk", "num_experts_per_tok", "num_selected_experts", "k")
MOST_EXPERTS: Final = 4096


def is_router(name: str, module: Any, parent: Any) -> bool:
    """Return whether a module routes tokens to experts, by its name or class and its siblings.

    The whole model, whose `parent` is None, is no router.
    """
    if parent is None:
        return False
    if not ROUTER_NAME.search(name) and not ROUTER_CLASS.search(type(module).__name__):
        return False
    return any(EXPERTS.search(child) for child, _ in parent.named_children())


def expert_loads(output: Any, *owners: Any) -> Any:
    """Return the share of choices of each expert; None if the output has no scores of experts.

    Parameters
    ----------
    output
        Of a router: scores ``(..., experts)``, or a tuple with scores, and the chosen indices if
        the router chooses.
    owners
        The router and the modules around it, one of which says how many experts a token has.
    """
    parts = output if isinstance(output, (tuple, list)) else (output,)
    if any(hasattr(part, "to_local") for part in parts):
        return None
    tensors = [part.detach() for part in parts if isinstance(part, torch.Tensor) and part.ndim > 1]
    scores = [part for part in tensors if part.is_floating_point()]
    if not scores:
        return None
    experts = max(part.shape[-1] for part in scores)
    if not 1 < experts <= MOST_EXPERTS:
        return None
    widest = next(part for part in scores if part.shape[-1] == experts)
    chosen = [part for part in tensors if part.dtype in (torch.int32, torch.int64)]
    count = _choices(owners)
    if chosen and chosen[0].shape[-1] < experts:
        indices = chosen[0]
    elif count is not None and count <= experts:
        indices = widest.topk(count, -1).indices
    else:
        return None
    if not indices.numel():
        return None
    # Comparing is deterministic, unlike counting by scattering on some devices.
    numbers = torch.arange(experts, device=indices.device)
    loads = torch.stack([(indices == number).sum() for number in numbers]).float()
    return loads / indices.numel()


def _choices(owners: tuple[Any, ...]) -> int | None:
    """Return how many experts a token is sent to, as a module or its configuration says."""
    for owner in owners:
        for source in (owner, getattr(owner, "config", None)):
            for name in CHOICES:
                value = getattr(source, name, None)
                if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                    return value
    return None
