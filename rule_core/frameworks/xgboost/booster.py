"""The metrics, importances and trees of an XGBoost model, by tensor name."""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# From ``Booster.get_score``.
IMPORTANCES: Final = ("weight", "gain", "cover", "total_gain", "total_cover")
COLUMNS: Final[Mapping[str, type]] = {
    "Tree": int,
    "Node": int,
    "ID": str,
    "Feature": str,
    "Split": float,
    "Yes": str,
    "No": str,
    "Missing": str,
    "Gain": float,
    "Cover": float,
    "Category": str,
}
NOTHING: Final = "nan"  # in a column of text


def features(model: Any) -> list[str]:
    """Return the names of a booster's features; ``f0, f1, ...`` if its data named none."""
    return model.feature_names or [f"f{number}" for number in range(model.num_features())]


def metrics(evals_log: Mapping[str, Mapping[str, Sequence[Any]]]) -> dict[str, float]:
    """Return the latest value of each metric by ``<set>-<metric>``; in cross-validation the mean.

    >>> metrics({"train": {"rmse": [0.5, 0.25]}, "test": {"auc": [(0.5, 0.125)]}})
    {'train-rmse': 0.25, 'test-auc': 0.5}
    """
    latest = {
        f"{name}-{metric}": values[-1]
        for name, results in evals_log.items()
        for metric, values in results.items()
    }
    return {name: value[0] if isinstance(value, tuple) else value for name, value in latest.items()}


def importances(model: Any) -> dict[str, float]:
    """Return ``feature_importance/<type>/<feature>`` as shares of the total of the type."""
    shares = {}
    for kind in IMPORTANCES:
        scores = model.get_score(importance_type=kind)
        total = sum(scores.values())
        for feature, score in scores.items():
            shares[f"feature_importance/{kind}/{feature}"] = score / total if total else 0.0
    return shares


def last_trees(model: Any) -> dict[str, NDArray[Any]]:
    """Return the nodes of the trees of a booster's last round, as ``trees/<column>``.

    Each column has shape ``(nodes,)``, parents before children. In leaves, `Feature` is ``Leaf``,
    `Gain` is the weight; missing values are NaN, or ``nan`` in text columns.
    """
    last = model.num_boosted_rounds() - 1
    dumps = model[last].get_dump(with_stats=True, dump_format="json")
    nodes = [
        node
        for tree, dump in enumerate(dumps, last * len(dumps))
        for node in _nodes(tree, json.loads(dump))
    ]
    return {
        f"trees/{column}": np.array([node[column] for node in nodes], kind)
        for column, kind in COLUMNS.items()
    }


def _nodes(tree: int, node: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a node and its descendants as rows of the table."""
    children = node.get("children", ())
    condition = node.get("split_condition", np.nan)
    in_set = isinstance(condition, list)
    yield {
        "Tree": tree,
        "Node": node["nodeid"],
        "ID": f"{tree}-{node['nodeid']}",
        "Feature": node.get("split", "Leaf"),
        "Split": np.nan if in_set else condition,
        "Yes": _child(tree, node, "yes"),
        "No": _child(tree, node, "no"),
        "Missing": _child(tree, node, "missing"),
        "Gain": node.get("gain", node.get("leaf")),
        "Cover": node["cover"],
        "Category": ",".join(map(str, condition)) if in_set else NOTHING,
    }
    yield from itertools.chain.from_iterable(_nodes(tree, child) for child in children)


def _child(tree: int, node: Mapping[str, Any], side: str) -> str:
    return f"{tree}-{node[side]}" if side in node else NOTHING
