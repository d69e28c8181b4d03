"""Hook: saves tensors of an XGBoost training job in each round, as a callback of XGBoost."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Self

import xgboost
from xgboost.callback import TrainingCallback

from rule_core.frameworks.xgboost import booster
from rule_core.logger import get_logger
from rule_core.saving import current_hook
from rule_core.saving.hook import Hook as CoreHook

# The pattern of losses applies to sets whose names consist of letters. For others, such as
# scikit-learn's ``validation_0``, these are the metrics where larger is better.
MATCHED_BY_PATTERN: Final = re.compile("^[a-zA-z]+-")
RISING: Final = frozenset({"auc", "aucpr", "map", "ndcg", "pre"})
CALLBACK_METHODS: Final = (
    "before_training",
    "after_training",
    "before_iteration",
    "after_iteration",
)
DATA: Final = frozenset({"train_data", "validation_data"})


class Hook(CoreHook):
    """Save metrics, predictions, importances, SHAP values and trees of an XGBoost training job.

    Pass it to ``xgboost.train(..., callbacks=[hook])`` or ``XGBClassifier(callbacks=[hook])``. A
    step is a round of the booster; a training that continues a model continues its rounds. Costly
    tensors (predictions, SHAP values, dumps of trees) are computed only in rounds that save them.
    List the hook before callbacks that stop the training: XGBoost hides the last round from later
    callbacks. With ``xgboost.cv`` only the means of the metrics are saved. `close` ends the trial,
    and is called at exit. A copy of the hook, as made when estimators are cloned or stored, writes
    nothing. Hyperparameters and data may also be assigned, as attributes of the parameters' names.

    Parameters
    ----------
    *args, **kwargs
        Arguments of `smdebug.core.hook.Hook`; by default every 10th round is saved.
    hyperparameters
        Values by name; numbers, strings and lists of either are saved, other values as strings.
    train_data
        Data for SHAP values: an `xgboost.DMatrix`, or the path of a file and ``csv``
        (labels in the first column, no header) or ``libsvm``.
    validation_data
        Data for predictions and labels; `train_data` by default.

    Raises
    ------
    SMDebugTypeError, SMDebugValueError
        If the data is invalid.

    Notes
    -----
    As in smdebug, each ``full_shap/<feature>`` holds the SHAP values of all features and the
    bias, of shape ``(rows, ..., features + 1)``.

    Examples
    --------
    >>> hook = Hook(out_dir, include_collections=["losses"])  # doctest: +SKIP
    >>> xgboost.train(params, data, evals=[(data, "train")], callbacks=[hook])  # doctest: +SKIP
    """

    GUARDED: ClassVar[Sequence[str]] = ("before_iteration", "after_iteration", "_begin_training")

    STEPS_JOIN = False
    FRAMEWORK = "xgboost"
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
        self.hyperparameters = hyperparameters
        self.train_data = train_data
        self.validation_data = validation_data
        super().__init__(*args, **kwargs)
        self._first_round = 0
        self._placed: set[tuple[str, str]] = set()
        if not self.dry_run:
            current_hook.set_hook(self)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Prefer the methods of the hook to XGBoost's empty ones, whatever the order of bases."""
        super().__init_subclass__(**kwargs)
        for method in CALLBACK_METHODS:
            if getattr(cls, method) is getattr(TrainingCallback, method):
                setattr(cls, method, getattr(Hook, method))

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; data is checked, and read if it is a file."""
        super().__setattr__(name, booster.matrix(name, value) if name in DATA else value)

    def __reduce__(self) -> tuple[Callable[[type["Hook"], str], "Hook"], tuple[type["Hook"], str]]:
        return _copy, (type(self), self.out_dir)

    @classmethod
    def rank_and_size(cls) -> tuple[int, int]:
        """Return them from XGBoost's communicator, if there is one."""
        if xgboost.collective.is_distributed():
            return xgboost.collective.get_rank(), xgboost.collective.get_world_size()
        return super().rank_and_size()

    @classmethod
    def hook_from_config(cls, json_config_path: str | os.PathLike[str] | None = None) -> Self:
        """Create a hook from a JSON file; the older name of `create_from_json_file`."""
        return cls.create_from_json_file(json_config_path)

    def before_training(self, model: Any) -> Any:
        """Continue the rounds of an existing model."""
        self._begin_training(model)
        return model

    def after_training(self, model: Any) -> Any:
        """Return the model: the trial stays open, since a further training may follow."""
        return model

    def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> None:  # noqa: ARG002 - XGBoost's signature
        """Begin a step, at which custom objectives and metrics may save tensors."""
        self._begin_round(epoch)

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> None:
        """Save the tensors of the collections that are saved at this round."""
        self._begin_round(epoch)
        if self._saving:
            self._save_metrics(booster.metrics(evals_log))
            if _is_cross_validation(model):
                self._warn_once("cv", "Of a cross-validation, only the mean metrics are saved.")
            else:
                data = self.train_data, self.validation_data
                for part in booster.parts(model, self.hyperparameters, *data):
                    self._save_part(part)
        self._end_step()

    def _begin_training(self, model: Any) -> None:
        first = 0 if _is_cross_validation(model) else model.num_boosted_rounds()
        if self._has_started and first <= self.global_step:
            self._warn_once("again", "The steps of a further training follow those of the first.")
            first = self.global_step + 1
        self._first_round = first

    def _begin_round(self, epoch: int) -> None:
        """Begin the step of a round, unless it is open."""
        step = self._first_round + epoch
        if self._in_step and self.global_step == step:
            return
        self._end_step()
        self._loaded = True  # the booster counts the rounds, not the resumed trial
        self.global_step = self.mode_steps[self.mode] = step - 1
        self._begin_step()

    def _save_metrics(self, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._place("metrics", name)
            kind = name.partition("-")[2].partition("@")[0]
            if MATCHED_BY_PATTERN.match(name) is None and kind not in RISING:
                self._place("losses", name)
            self._record(name, value)

    def _save_part(self, part: booster.Part) -> None:
        """Compute and save a part of the booster if any of its tensors is saved at this step."""
        for name in part.names:
            if not name.endswith("_shap/bias"):
                self._place(part.collection, name)
        if all(self._policy.plan(name, self._saving) is None for name in part.names):
            return
        try:
            tensors = part.find()
        except ValueError as err:  # the base class of XGBoost's errors
            reason = str(err).partition("\n")[0].rstrip(".") + "."
            self._warn_once(part.collection, f"{part.collection!r} is not saved. {reason}")
            return
        for name, value in tensors.items():
            self._record(name, value)

    def _place(self, collection: str, name: str) -> None:
        """Add a tensor to the collection of its kind, independent of its name."""
        if (collection, name) not in self._placed:
            self._placed.add((collection, name))
            if collection not in self._policy.collections_of(name):
                self._add_member(collection, name)


# XGBoost takes callbacks of this class only. It is no base class of the hook, so that scripts can
# list it before the hook among their own bases.
TrainingCallback.register(Hook)


def _is_cross_validation(model: Any) -> bool:
    """Return whether a model is the pack of boosters of a cross-validation."""
    return hasattr(model, "cvfolds")


def _copy(cls: type[Hook], out_dir: str) -> Hook:
    get_logger("hook").warning("A copy of the hook of '%s' writes nothing.", out_dir)
    return cls(out_dir, dry_run=True)


# ``get_hook(json_config_path=None)``: the latest hook, or a new one from the JSON file.
get_hook = partial(current_hook.get_hook_of, Hook, create_if_not_exists=True)
