"""The tensors of an XGBoost model by name: metrics, and parts that are computed on demand."""

import functools
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import xgboost
from numpy.typing import NDArray

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError

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
# Content types of smdebug, as XGBoost spells them in a file address.
FORMATS: Final = {"csv": "csv&label_column=0", "libsvm": "libsvm", "x-libsvm": "libsvm"}
PLAIN: Final = (bool, int, float, str, list, tuple, np.generic, np.ndarray)


class Part(NamedTuple):
    """A collection, the names of its tensors, and a function that computes their values."""

    collection: str
    names: Sequence[str]
    find: Callable[[], Mapping[str, Any]]


def features(model: Any) -> list[str]:
    """Return the names of a booster's features; ``f0, f1, ...`` if its data named none."""
    return model.feature_names or [f"f{index}" for index in range(model.num_features())]


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


def parts(
    model: Any, hyperparameters: Mapping[str, Any] | None, train_data: Any, validation_data: Any
) -> Iterator[Part]:
    """Yield the parts of a booster, without computing their values; see `smdebug.xgboost.Hook`."""
    feature_names = features(model)
    with_bias = [*feature_names, "bias"]
    average_names = _under("average_shap", with_bias)
    full_names = _under("full_shap", with_bias)
    importance_names = [f"{kind}/{name}" for kind in IMPORTANCES for name in feature_names]

    def rows() -> Any:
        return _required(
            "validation_data", train_data if validation_data is None else validation_data
        )

    @functools.cache
    def shap() -> Any:
        return model.predict(_required("train_data", train_data), pred_contribs=True)

    def average_shap() -> Mapping[str, Any]:
        mean = shap().mean(axis=tuple(range(shap().ndim - 1)))
        return dict(zip(average_names, mean, strict=True))

    def saved_hyperparameters() -> Mapping[str, Any]:
        return {
            f"hyperparameters/{name}": value if isinstance(value, PLAIN) else str(value)
            for name, value in _required("hyperparameters", hyperparameters).items()
        }

    # Without hyperparameters, any name shows whether the collection is saved.
    hyperparameter_names = _under("hyperparameters", hyperparameters or ["..."])
    yield Part("hyperparameters", hyperparameter_names, saved_hyperparameters)
    yield Part("predictions", ["predictions"], lambda: {"predictions": model.predict(rows())})
    yield Part("labels", ["labels"], lambda: {"labels": rows().get_label()})
    yield Part(
        "feature_importance",
        _under("feature_importance", importance_names),
        lambda: importances(model),
    )
    yield Part("trees", _under("trees", COLUMNS), lambda: last_trees(model))
    yield Part("average_shap", average_names, average_shap)
    yield Part("full_shap", full_names, lambda: dict.fromkeys(full_names, shap()))


def _under(prefix: str, names: Sequence[str] | Mapping[str, Any]) -> list[str]:
    return [f"{prefix}/{name}" for name in names]


def _required(argument: str, value: Any) -> Any:
    if value is None:
        raise SMDebugValueError(f"The hook needs its attribute {argument!r} for that.")
    return value


def matrix(argument: str, value: Any) -> Any:
    """Convert an argument of the hook to an `xgboost.DMatrix`, reading a file if needed.

    Raises
    ------
    SMDebugTypeError, SMDebugValueError
        If it is neither a matrix nor a file, or the file does not exist.
    """
    if value is None or isinstance(value, xgboost.DMatrix):
        return value
    match value:
        case (str() as name, str() as content_type):
            path = Path(name).expanduser()
        case _:
            raise SMDebugTypeError(
                f"Argument {argument!r} must be an xgboost.DMatrix or the path of a file and its "
                f"content type, got {type(value).__name__}."
            )
    form = FORMATS.get(content_type.lower().removeprefix("text/"))
    if form is None:
        raise SMDebugValueError(
            f"The content type of {argument!r} must be csv or libsvm, got {content_type!r}."
        )
    if not path.is_file():
        raise SMDebugValueError(f"Argument {argument!r} must name an existing file, got {name!r}.")
    return xgboost.DMatrix(f"{path}?format={form}")
