"""Tables of the nodes of trees, as the XGBoost hook saves them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

Columns = dict[str, "np.ndarray"]
NOTHING = "nan"


def table(*trees: dict[int, Sequence[int]]) -> Columns:
    """Return ``trees/<column>`` for trees that are given as node -> children."""
    rows: list[dict[str, Any]] = []
    for tree, nodes in enumerate(trees):
        for node, children in nodes.items():
            links = [f"{tree}-{child}" for child in children] or [NOTHING, NOTHING]
            rows.append(
                {
                    "Tree": tree,
                    "Node": node,
                    "ID": f"{tree}-{node}",
                    "Yes": links[0],
                    "No": links[-1],
                    "Feature": "f0" if children else "Leaf",
                    "Split": 0.5 if children else np.nan,
                }
            )
    return {f"trees/{name}": np.array([row[name] for row in rows]) for name in rows[0]}


def full(depth: int) -> dict[int, Sequence[int]]:
    """Return a complete tree; node ids are heap positions."""
    first, end = 2**depth - 1, 2 ** (depth + 1) - 1
    inner = {node: (2 * node + 1, 2 * node + 2) for node in range(first)}
    return inner | dict.fromkeys(range(first, end), ())


def chain(depth: int) -> dict[int, Sequence[int]]:
    """Return a tree that grew on one side only; node ids count up."""
    nodes: dict[int, Sequence[int]] = {0: ()}
    for level in range(depth):
        nodes[2 * level] = (2 * level + 1, 2 * level + 2)
        nodes |= {2 * level + 1: (), 2 * level + 2: ()}
    return nodes
