"""parameter_collection: the collections of the tensors in a checkpoint."""

from typing import Final

# What models store beside their parameters; training does not change most of it.
_BUFFERS: Final = frozenset(
    {
        "running_mean",
        "running_var",
        "num_batches_tracked",
        "inv_freq",
        "position_ids",
        "token_type_ids",
        "masked_bias",
        "relative_position_index",
    }
)


def parameter_collection(name: str) -> str:
    """Return the collection of a tensor in a checkpoint, as hooks do; "" for buffers.

    >>> [*map(parameter_collection, ("fc.weight", "fc.bias", "embedding", "bn.running_mean"))]
    ['weights', 'biases', 'weights', '']
    """
    if name.startswith("optimizer/"):
        return "optimizer_variables"
    last = name.replace("/", ".").rpartition(".")[2]
    if last in _BUFFERS:
        return ""
    return "biases" if "bias" in last and "weight" not in last else "weights"
