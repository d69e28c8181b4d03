"""Part: the tensors of a booster other than metrics, computed on demand."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import xgboost

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.frameworks.xgboost import booster

# Content types of smdebug, as XGBoost spells them in a file address.
FORMATS: Final = {"csv": "csv&label_column=0", "libsvm": "libsvm", "x-libsvm": "libsvm"}
PLAIN: Final = (bool, int, float, str, list, tuple, np.generic, np.ndarray)


class Part(NamedTuple):
    """A collection, the names of its tensors, and a function that computes their values."""

    collection: str
    names: Sequence[str]
    find: Callable[[], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class BoosterInputs:
    """Hyperparameters and data for the tensors of a booster; see `smdebug.xgboost.Hook`."""

    hyperparameters: Mapping[str, Any] | None
    train_data: Any
    validation_data: Any

    def parts(self, model: Any) -> Iterator[Part]:
        """Yield the parts of a booster, without computing their values."""
        names = booster.features(model)
        with_bias = [*names, "bias"]
        average_names = _under("average_shap", with_bias)
        full_names = _under("full_shap", with_bias)
        importance_names = [f"{kind}/{name}" for kind in booster.IMPORTANCES for name in names]

        @functools.cache
        def shap() -> Any:
            data = _required("train_data", self.train_data)
            return model.predict(data, pred_contribs=True)

        def average_shap() -> Mapping[str, Any]:
            mean = shap().mean(axis=tuple(range(shap().ndim - 1)))
            return dict(zip(average_names, mean, strict=True))

        # Without hyperparameters, any name shows whether the collection is saved.
        hyperparameter_names = _under("hyperparameters", self.hyperparameters or ["..."])
        yield Part("hyperparameters", hyperparameter_names, self._hyperparameters)
        yield Part(
            "predictions", ["predictions"], lambda: {"predictions": model.predict(self._rows())}
        )
        yield Part("labels", ["labels"], lambda: {"labels": self._rows().get_label()})
        yield Part(
            "feature_importance",
            _under("feature_importance", importance_names),
            lambda: booster.importances(model),
        )
        yield Part("trees", _under("trees", booster.COLUMNS), lambda: booster.last_trees(model))
        yield Part("average_shap", average_names, average_shap)
        yield Part("full_shap", full_names, lambda: dict.fromkeys(full_names, shap()))

    def _hyperparameters(self) -> dict[str, Any]:
        hyperparameters = _required("hyperparameters", self.hyperparameters)
        return {
            f"hyperparameters/{name}": value if isinstance(value, PLAIN) else str(value)
            for name, value in hyperparameters.items()
        }

    def _rows(self) -> Any:
        """Return the data for predictions and labels."""
        own = self.validation_data
        return _required("validation_data", self.train_data if own is None else own)


def _under(prefix: str, names: Sequence[str] | Mapping[str, Any]) -> list[str]:
    return [f"{prefix}/{name}" for name in names]


def _required(argument: str, value: Any) -> Any:
    if value is None:
        msg = f"The hook needs its attribute {argument!r} for that."
        raise SMDebugValueError(msg)
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
            msg = (
                f"Argument {argument!r} must be an xgboost.DMatrix or the path of a file and its "
                f"content type, got {type(value).__name__}."
            )
            raise SMDebugTypeError(msg)
    form = FORMATS.get(content_type.lower().removeprefix("text/"))
    if form is None:
        msg = f"The content type of {argument!r} must be csv or libsvm, got {content_type!r}."
        raise SMDebugValueError(msg)
    if not path.is_file():
        msg = f"Argument {argument!r} must name an existing file, got {name!r}."
        raise SMDebugValueError(msg)
    return xgboost.DMatrix(f"{path}?format={form}")
