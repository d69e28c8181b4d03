"""Hook: saves what an XGBoost training job learns, round by round, as a callback of XGBoost."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import xgboost
from xgboost.callback import TrainingCallback

from smdebug.core import current_hook
from smdebug.core.guard import guarded
from smdebug.core.hook import Hook as CoreHook
from smdebug.core.logger import get_logger
from smdebug.xgboost import booster
from smdebug.xgboost.parts import Given, Part, matrix

# The pattern of losses tells those sets apart whose names are made of letters; for the others,
# such as scikit-learn's ``validation_0``, these are the metrics that get better when they rise.
TOLD_BY_PATTERN: Final = re.compile("^[a-zA-z]+-")
RISING: Final = frozenset({"auc", "aucpr", "map", "ndcg", "pre"})


class Hook(CoreHook, TrainingCallback):
    """Save metrics, predictions, importances, SHAP values and trees of an XGBoost training job.

    For ``xgboost.train(..., callbacks=[hook])`` and ``XGBClassifier(callbacks=[hook])``. A step is
    a round of the booster: a training that goes on from a model counts on from that model's rounds.
    What a collection needs (predictions, SHAP values, dumps of trees) is computed only in rounds at
    which it is saved. List the hook before callbacks that stop the training: XGBoost hides the last
    round from those behind them. With ``xgboost.cv`` the means of the metrics are saved, and
    nothing else. `close` ends the trial, and is called at exit. A copy of the hook, as made where
    estimators are cloned or stored, writes nothing.

    Parameters
    ----------
    *args, **kwargs
        Those of `smdebug.core.hook.Hook`; by default every 10th round is saved.
    hyperparameters
        By name; saved as numbers, texts, or lists of either, and everything else as text.
    train_data
        What SHAP values are computed for: an `xgboost.DMatrix`, or the path of a file and ``csv``
        (labels in the first column, no header) or ``libsvm``.
    validation_data
        What predictions and labels are saved of; by default `train_data`.

    Raises
    ------
    SMDebugTypeError, SMDebugValueError
        If the data is neither.

    Notes
    -----
    As smdebug saved it, each ``full_shap/<feature>`` holds the SHAP values of all features and the
    bias, of shape ``(rows, ..., features + 1)``.

    Examples
    --------
    >>> hook = Hook(out_dir, include_collections=["losses"])  # doctest: +SKIP
    >>> xgboost.train(params, data, evals=[(data, "train")], callbacks=[hook])  # doctest: +SKIP
    """

    DEFAULT_COLLECTIONS: ClassVar[Mapping[str, Sequence[str]]] = {
        "all": (),
        "default": (),
        "hyperparameters": ("^hyperparameters/.*$",),
        "metrics": ("^[a-zA-z]+-[a-zA-z0-9]+$",),
        "losses": ("^[a-zA-z]+-.+(?<!(auc|map))$",),
        "predictions": ("^predictions$",),
        "labels": ("^labels$",),
        "feature_importance": ("^feature_importance/.*",),
        "average_shap": ("^average_shap/.*[^/bias]$",),
        "full_shap": ("^full_shap/.*[^/bias]$",),
        "trees": ("^trees/.*",),
    }
    DEFAULT_INCLUDED: ClassVar[Sequence[str]] = ("metrics",)
    DEFAULT_SAVE_INTERVAL: ClassVar[int] = 10

    def __init__(
        self,
        *args: Any,
        hyperparameters: Mapping[str, Any] | None = None,
        train_data: Any = None,
        validation_data: Any = None,
        **kwargs: Any,
    ) -> None:
        self._given = Given(
            hyperparameters,
            matrix("train_data", train_data),
            matrix("validation_data", validation_data),
        )
        super().__init__(*args, **kwargs)
        self._first_round = 0
        self._placed: set[tuple[str, str]] = set()
        if not self.dry_run:
            current_hook.set_hook(self)

    def __reduce__(self) -> tuple[Callable[[type["Hook"], str], "Hook"], tuple[type["Hook"], str]]:
        return _copy, (type(self), self.out_dir)

    def _rank_and_size(self) -> tuple[int, int]:
        """Return what XGBoost's communicator says, if there is one."""
        if xgboost.collective.is_distributed():
            return xgboost.collective.get_rank(), xgboost.collective.get_world_size()
        return super()._rank_and_size()

    def before_training(self, model: Any) -> Any:
        """Take up the rounds that a model has already."""
        self._begin_training(model)
        return model

    @guarded
    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> None:  # noqa: ARG002 - XGBoost's signature
        """Begin a step: objectives and metrics of one's own may save tensors at it."""
        self._begin_round(epoch)

    @guarded
    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> None:
        """Save what the collections that are saved at this round hold."""
        self._begin_round(epoch)
        if self._saving:
            self._save_metrics(booster.metrics(evals_log))
            if _is_several(model):
                self._warn_once("cv", "Of a cross-validation the mean metrics are saved only.")
            else:
                for part in self._given.parts(model):
                    self._save_part(part)
        self._end_step()

    @guarded
    def _begin_training(self, model: Any) -> None:
        first = 0 if _is_several(model) else model.num_boosted_rounds()
        if self._began and first <= self.global_step:
            self._warn_once("again", "The steps of a further training follow those of the first.")
            first = self.global_step + 1
        self._first_round = first

    def _begin_round(self, epoch: int) -> None:
        """Begin the step of a round, unless it is in hand."""
        step = self._first_round + epoch
        if self._in_step and self.global_step == step:
            return
        self._end_step()
        self._loaded = True  # the booster counts the rounds, whatever a resumed trial holds
        self.global_step = self.mode_steps[self.mode] = step - 1
        self._begin_step()

    def _save_metrics(self, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._place("metrics", name)
            kind = name.partition("-")[2].partition("@")[0]
            if TOLD_BY_PATTERN.match(name) is None and kind not in RISING:
                self._place("losses", name)
            self._record(name, value)

    def _save_part(self, part: Part) -> None:
        """Find and save a part of the booster if any of its tensors is saved at this step."""
        for name in part.names:
            if not name.endswith("_shap/bias"):
                self._place(part.collection, name)
        if all(self._decisions.plan(name, self._saving) is None for name in part.names):
            return
        try:
            found = part.find()
        except ValueError as err:  # XGBoost's own errors are such
            reason = str(err).partition("\n")[0].rstrip(".") + "."
            self._warn_once(part.collection, f"{part.collection!r} is not saved. {reason}")
            return
        for name, value in found.items():
            self._record(name, value)

    def _place(self, collection: str, name: str) -> None:
        """Put a tensor into the collection that it belongs to by its kind, whatever its name."""
        if (collection, name) not in self._placed:
            self._placed.add((collection, name))
            if collection not in self._decisions.collections_of(name):
                self._make_member(collection, name)


def _is_several(model: Any) -> bool:
    """Say whether a model is the pack of boosters of a cross-validation."""
    return hasattr(model, "cvfolds")


def _copy(cls: type[Hook], out_dir: str) -> Hook:
    get_logger("hook").warning("A copy of the hook of '%s' writes nothing.", out_dir)
    return cls(out_dir, dry_run=True)
