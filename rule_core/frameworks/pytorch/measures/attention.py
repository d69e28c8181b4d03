"""Attention: entropies of heads and mass on the future, from a sample of queries and keys."""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import torch
from torch.nn import functional

from rule_core.frameworks.pytorch.patches import Patch, Watcher

SEQUENCES: Final = 2
POSITIONS: Final = 256
QUERIES: Final = 64
SCORES: Final = POSITIONS * POSITIONS  # of a head and sequence
BY_HEADS: Final = 4  # dimensions: sequences, heads, queries, keys or width
BATCHED: Final = 3  # dimensions: sequences, positions, width; or sequences x heads, queries, keys
HIDDEN: Final = -1e4  # a mask adds at most this to hide a key
MOSTLY: Final = 0.85  # of the future is hidden: the attention is causal, perhaps with a leak
TOLERANCE: Final = 1e-2
TINY: Final = torch.finfo(torch.float32).tiny
ATTENTION_CLASS: Final = re.compile(r"Attention")
CAUSAL_CLASS: Final = re.compile(r"(?<!Non)Causal|GPT|Gpt")


class AttentionValues(NamedTuple):
    """The entropy of each head, and the mass on the future of causal attention or None."""

    entropy: Any
    future_mass: Any


def of_probabilities(
    probabilities: Any, visible: Any = None, future: Any = None
) -> AttentionValues | None:
    """Return the values of attention probabilities; None if no row sees two keys.

    Parameters
    ----------
    probabilities
        ``(sequences, heads, queries, keys)``.
    visible
        Which keys a query may see, of a shape that can be broadcast; by default those with a
        probability above zero.
    future
        Which keys come after each query, ``(queries, keys)``; None if attention is not causal.
    """
    probabilities = probabilities.float()
    counts = (probabilities > 0 if visible is None else visible).sum(-1)
    # Several times as fast as torch.special.entr.
    logs = probabilities.clamp(min=TINY).log_()
    entropy = -torch.linalg.vecdot(probabilities, logs) / counts.clamp(min=2).log()
    is_judged = (counts > 1).expand(entropy.shape)
    rows = is_judged.sum((0, 2))
    entropy = torch.where(is_judged, entropy, 0.0).sum((0, 2)) / rows
    if future is None:
        return AttentionValues(entropy, None)
    mass = torch.linalg.vecdot(probabilities, future.float().expand(probabilities.shape))
    return AttentionValues(entropy, mass.nanmean())


def of_scores(
    query: Any,
    key: Any,
    mask: Any = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    is_meant_causal: bool = False,
) -> AttentionValues | None:
    """Return the values of the attention between a sample of queries and keys.

    The sample is the first two sequences, and the first 256 positions of causal attention;
    otherwise all keys. Of the queries at these positions, at most 64 are measured, evenly spaced.

    Parameters
    ----------
    query, key, mask, is_causal, scale
        As `torch.nn.functional.scaled_dot_product_attention` takes them.
    is_meant_causal
        Whether the model says that its attention is causal. A mask that hides less than 85 % of
        the future says otherwise, unless it shows every query a later key: that of a prefix, or of
        blocks, has queries that see none.

    Returns
    -------
    AttentionValues or None
        None for shapes that are not ``(sequences, heads, positions, size)``.
    """
    if query.ndim != key.ndim or query.ndim != BY_HEADS or not key.shape[-2]:
        return None
    if query.shape[1] % key.shape[1]:
        return None
    length, keys = query.shape[-2], key.shape[-2]
    query, key = query.detach()[:SEQUENCES], key.detach()[:SEQUENCES]
    if mask is not None:
        mask = mask.detach()
        mask = mask.expand((*(1,) * (4 - mask.ndim), *mask.shape[:-2], length, keys))[:SEQUENCES]
    measures_future = length == keys and (is_causal or (is_meant_causal and mask is None))
    if length == keys > 1 and not is_causal and mask is not None:
        corner = _hidden_by(mask[..., :POSITIONS, :POSITIONS])
        measures_future = _is_causal_mask(corner) or (is_meant_causal and _shows_later_keys(corner))
    last, columns, step = length, slice(None), -(-length * keys // SCORES)
    if is_causal and length == keys:
        last, columns, step = min(length, POSITIONS), slice(0, POSITIONS), 1
    elif measures_future:  # of the first queries
        last, step = min(length, max(2, SCORES // keys)), 1
    rows = slice(0, last, max(1, step, -(-last // QUERIES)))
    query, key = query[..., rows, :].float(), key[..., columns, :].float()
    key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * factor) @ key.transpose(-1, -2)
    positions = torch.arange(max(length, keys), device=scores.device)
    future = positions[:keys][columns] > positions[:length][rows, None]
    hidden = future[None, None] if is_causal else None
    if mask is not None:
        part = mask[..., rows, columns]
        hidden = _hidden_by(part) if hidden is None else hidden | _hidden_by(part)
        if mask.dtype is not torch.bool:
            scores += part.float()
    if hidden is None:
        visible = torch.ones((1, 1, 1, 1), dtype=torch.bool, device=scores.device)
        visible = visible.expand(1, 1, 1, scores.shape[-1])
    else:
        scores, visible = scores.masked_fill_(hidden, -math.inf), ~hidden
    return of_probabilities(scores.softmax(-1), visible, future if measures_future else None)


def _is_causal_mask(hidden: Any) -> bool:
    """Return whether most of the future is hidden, not counting keys that no query sees."""
    above = torch.ones_like(hidden, dtype=torch.bool).triu(1)
    is_seen = (~hidden).any(-2, keepdim=True)
    return bool(hidden[above & is_seen].float().mean() >= MOSTLY)


def _shows_later_keys(hidden: Any) -> bool:
    """Return whether each query before the last key that any query sees also sees a later one."""
    visible = ~hidden
    positions = torch.arange(hidden.shape[-1], device=hidden.device)
    is_before_last = visible.any(-2, keepdim=True).flip(-1).cumsum(-1).flip(-1)[..., 1:] > 0
    sees_later = (visible & (positions > positions[:, None])).any(-1)[..., :-1]
    return bool((sees_later | ~is_before_last[..., 0, :]).all())


def _hidden_by(mask: Any) -> Any:
    """Return which keys a mask hides."""
    return ~mask if mask.dtype is torch.bool else mask <= HIDDEN


def of_output(output: Any, *, is_meant_causal: bool = False) -> AttentionValues | None:
    """Return the values of attention probabilities in the output of a module, if it has any."""
    if not isinstance(output, tuple):
        return None
    for item in output[1:]:
        if hasattr(item, "to_local"):
            continue
        if isinstance(item, torch.Tensor) and item.ndim == BY_HEADS and item.is_floating_point():
            sample = item.detach()[:SEQUENCES].float()
            sums = sample.sum(-1)
            if bool(((sums - 1).abs() < TOLERANCE).all()):  # not after dropout
                is_causal = is_meant_causal and item.shape[-1] == item.shape[-2]
                future = torch.ones_like(sample[0, 0]).triu(1) if is_causal else None
                return of_probabilities(sample, future=future)
    return None


def of_multihead(
    module: Any, args: Any, kwargs: Any, *, is_meant_causal: bool = False
) -> AttentionValues | None:
    """Return the values of `torch.nn.MultiheadAttention`, computed from its arguments."""
    names = ("query", "key", "value", "key_padding_mask", "need_weights", "attn_mask")
    arguments = {**dict(zip(names, args, strict=False)), **(kwargs or {})}
    query, key = arguments["query"], arguments["key"]
    if query.ndim != BATCHED or query.is_nested or module.in_proj_weight is None:
        return None
    if any(hasattr(item, "to_local") for item in (query, key, module.in_proj_weight)):
        return None
    if not module.batch_first:
        query, key = query.transpose(0, 1), key.transpose(0, 1)
    weights = module.in_proj_weight.detach().chunk(3)
    biases = [None] * 3 if module.in_proj_bias is None else module.in_proj_bias.detach().chunk(3)
    heads = [
        functional.linear(side[:SEQUENCES].detach().to(weight.dtype), weight, bias)
        .unflatten(-1, (module.num_heads, -1))
        .transpose(1, 2)
        for side, weight, bias in zip((query, key), weights, biases, strict=False)
    ]
    mask = _additive(arguments.get("attn_mask"))
    if mask is not None and mask.ndim == BATCHED:
        mask = mask.unflatten(0, (-1, module.num_heads))[:SEQUENCES]
    padding = _additive(arguments.get("key_padding_mask"))
    if padding is not None:
        padding = padding[:SEQUENCES, None, None, :]
        mask = padding if mask is None else mask + padding
    if mask is not None:
        mask = mask.expand(*mask.shape[:-2], query.shape[1], key.shape[1])
    return of_scores(heads[0], heads[1], mask, is_meant_causal=is_meant_causal)


def _additive(mask: Any) -> Any:
    """Return a mask that is added to scores; in a boolean one, True hides a key."""
    if mask is None or mask.dtype is not torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=torch.float32).masked_fill(mask, -math.inf)


class AttentionCalls(Watcher):
    """Calls a function with queries and keys of `scaled_dot_product_attention`.

    The function of `torch.nn.functional` is patched; scripts that have imported it by name are not
    seen.

    Attributes
    ----------
    is_active
        Whether the function is called.
    """

    def __init__(self, call: Callable[..., None]) -> None:
        self.is_active = False
        self.call = call

    @classmethod
    def patched(cls) -> Iterator[Patch]:
        """Patch the function."""
        yield Patch(functional, "scaled_dot_product_attention", _passing_on)

    @classmethod
    def call_all(cls, *args: Any, **kwargs: Any) -> None:
        """Call the functions of all active instances."""
        for calls in [*cls._watching]:
            if calls.is_active:
                calls.call(*args, **kwargs)


def _passing_on(original: Any) -> Any:
    # Dynamo guards on the function, which therefore stays the same at all steps.
    def scaled_dot_product_attention(*args: Any, **kwargs: Any) -> Any:
        if not (torch.compiler.is_compiling() or torch.jit.is_tracing()):
            AttentionCalls.call_all(*args, **kwargs)
        return original(*args, **kwargs)

    builtins: Any = getattr(torch.jit, "_builtins", None)
    register = getattr(builtins, "_register_builtin", None)
    if register is not None:  # torch.jit.script must not compile it
        register(scaled_dot_product_attention, "aten::scaled_dot_product_attention")
    return scaled_dot_product_attention
