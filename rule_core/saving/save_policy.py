"""SavePolicy: which collections a hook saves at a step, and what it saves of each tensor."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.logger import get_logger
from rule_core.model import patterns
from rule_core.model.collection import SCALAR_COLLECTIONS, Collection, CollectionKeys
from rule_core.model.collection_manager import CollectionManager
from rule_core.model.reduction_config import ReductionConfig
from rule_core.model.save_config import SaveConfig, SaveConfigMode
from rule_core.modes import ModeKeys

# Collections that evaluation does not change.
TRAINING_ONLY: Final = frozenset({CollectionKeys.GRADIENTS, CollectionKeys.OPTIMIZER_VARIABLES})
_RAW_ONLY: Final = ReductionConfig(save_raw_tensor=True)
# Cached names; the cache is cleared when a loop generates more.
_MOST_NAMES: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class Plan:
    """What to save of one tensor at a step.

    Parameters
    ----------
    raw, shape
        Whether to save its values and its shape.
    reductions
        Reductions to save, as (operation, of the magnitudes).
    collections
        Names of the saved collections that contain it.
    histogram
        Whether one of them has a histogram of it for TensorBoard.
    """

    raw: bool
    shape: bool
    reductions: tuple[tuple[str, bool], ...]
    collections: tuple[str, ...]
    histogram: bool = True


class SavePolicy:
    """Decides what a hook saves when, without I/O and independent of frameworks.

    Parameters
    ----------
    defaults
        Patterns of the framework's default collections, by name.
    default_included
        Names of the collections that are saved by default.
    save_config
        Default steps of collections; missing modes get the default configuration.
    reduction_config
        Default reductions of collections; values by default.
    include_regex
        Patterns of the collection ``default``, which this option saves.
    include_collections
        Names of further collections to save; ``all`` saves every one.
    save_all
        Save every tensor.
    collections
        Configured collections; their patterns and names are added to those of existing ones.
    filled
        Names of collections that the framework's hook fills itself as it sees their tensors.
    collection_type
        Class of the framework's collections.

    Raises
    ------
    SMDebugTypeError, SMDebugValueError
        If an argument is invalid.

    Examples
    --------
    >>> policy = SavePolicy({"losses": ["loss"]}, ["losses"], save_config=SaveConfig(None, 10))
    >>> policy.prepare()
    >>> policy.saving(ModeKeys.TRAIN, 5)
    frozenset()
    >>> policy.plan("my_loss", policy.saving(ModeKeys.TRAIN, 20))
    Plan(raw=True, shape=False, reductions=(), collections=('losses',), histogram=False)
    """

    def __init__(
        self,
        defaults: Mapping[str, Iterable[str]],
        default_included: Iterable[str],
        *,
        save_config: SaveConfig | SaveConfigMode | Mapping[Any, Any] | None = None,
        reduction_config: ReductionConfig | Mapping[str, Any] | None = None,
        include_regex: str | Iterable[str] | None = None,
        include_collections: str | Iterable[str] | None = None,
        save_all: bool = False,
        collections: Iterable[Collection] = (),
        filled: Iterable[str] = (),
        collection_type: type[Collection] = Collection,
    ) -> None:
        self.manager = CollectionManager(
            (collection_type(name, list(regex)) for name, regex in defaults.items()),
            collection_type=collection_type,
        )
        self.save_config = _merged(SaveConfig.parse(save_config), SaveConfig())
        self.reduction_config = ReductionConfig.parse(reduction_config)
        self.is_prepared = False
        self._defaults = frozenset([*defaults, *filled])
        self._included = {*default_included, *_names(include_collections)}
        if include_regex:
            self._included.add(CollectionKeys.DEFAULT)
            self.manager.get(CollectionKeys.DEFAULT).include(*_names(include_regex))
        if save_all:
            self._included.add(CollectionKeys.ALL)
            self.manager.get(CollectionKeys.ALL).include(".*")
        for collection in collections:
            self._configure(collection)
        for name in self._included.intersection(filled):
            self.manager.get(name)
        self._members: dict[str, tuple[str, ...]] = {}
        self._plans: dict[str, dict[frozenset[str], Plan | None]] = {}
        self._sets: dict[frozenset[str], frozenset[str]] = {}

    def _configure(self, configured: Collection) -> None:
        if configured.name not in self.manager:
            self.manager.add(configured)
            return
        existing = self.manager.get(configured.name)
        existing.absorb(configured)
        existing.reduction_config = configured.reduction_config or existing.reduction_config
        existing.save_config = configured.save_config or existing.save_config
        existing.save_histogram = configured.save_histogram

    @property
    def included(self) -> frozenset[str]:
        """Names of the existing collections that are saved at their steps."""
        names = (collection.name for collection in self.manager)
        return frozenset(filter(self._is_included, names))

    def _is_included(self, name: str) -> bool:
        return name in self._included or CollectionKeys.ALL in self._included

    def names(self, collection: str) -> bool:
        """Return whether a collection is saved by its own name, not as a part of ``all``."""
        return collection in self._included

    def include(self, collection: str | Collection) -> Collection:
        """Add a collection, save and return it; one of the same name is replaced by an object."""
        added = self.manager.add(collection)
        self._included.add(added.name)
        if self.is_prepared:
            self._complete(added)
            self._clear_caches()
        return added

    def prepare(self) -> None:
        """Check and complete the collections; call it before the first step.

        Raises
        ------
        SMDebugValueError
            If a pattern is invalid.
        """
        for collection in self.manager:
            _check_patterns(collection)
            self._complete(collection)
        self._warn_of_missing_collections()
        self._clear_caches()
        self.is_prepared = True

    def empty(self) -> list[str]:
        """Return the names of the user's collections that have neither patterns nor tensors."""
        return [
            collection.name
            for collection in self.manager
            if collection.name not in self._defaults
            and not (collection.include_regex or collection.tensor_names)
        ]

    def _complete(self, collection: Collection) -> None:
        collection.reduction_config = self._reductions(collection)
        save_config = collection.save_config or self.save_config
        collection.save_config = _merged(save_config, self.save_config)
        if collection.name in SCALAR_COLLECTIONS:
            collection.save_histogram = False

    def _warn_of_missing_collections(self) -> None:
        collections = self.manager.get_collections()
        for name in sorted(self._included - collections.keys() - self._defaults):
            matches = difflib.get_close_matches(name, collections, n=1)
            hint = f" Did you mean {matches[0]!r}?" if matches else ""
            get_logger("hook").warning("There is no collection %r to save.%s", name, hint)

    def saving(self, mode: ModeKeys, mode_step: int) -> frozenset[str]:
        """Return the names of the collections to save at a step.

        Parameters
        ----------
        mode
            Mode of the step.
        mode_step
            Its number within the mode; in GLOBAL the global step.
        """
        in_training = mode in (ModeKeys.TRAIN, ModeKeys.GLOBAL)
        names = frozenset(
            collection.name
            for collection in self.manager
            if self._is_included(collection.name)
            and (in_training or collection.name not in TRAINING_ONLY)
            and self._save_config(collection, mode).should_save_step(mode_step)
        )
        # Return the same object each time, because it caches its hash.
        return self._sets.setdefault(names, names)

    def _save_config(self, collection: Collection, mode: ModeKeys) -> SaveConfigMode:
        """Return the configuration for a mode, even of a collection created after `prepare`."""
        config = collection.save_config and collection.save_config.mode_save_configs[mode]
        return config or self.save_config.get_save_config(mode)

    def _reductions(self, collection: Collection) -> ReductionConfig:
        if collection.name in SCALAR_COLLECTIONS:
            return _RAW_ONLY
        return collection.reduction_config or self.reduction_config

    def plan(self, name: str, saving: frozenset[str]) -> Plan | None:
        """Return what to save of a tensor when the collections `saving` are saved, or None.

        The collections of a name are determined once, at its first use; only `add_tensor` adds
        more.
        """
        plans = self._plans.get(name)
        if plans is None:
            if len(self._plans) >= _MOST_NAMES:
                self._clear_caches()
            plans = self._plans[name] = {}
        try:
            return plans[saving]
        except KeyError:
            plan = plans[saving] = self._make_plan(name, saving)
            return plan

    def _make_plan(self, name: str, saving: frozenset[str]) -> Plan | None:
        names = tuple(other for other in self.collections_of(name) if other in saving)
        if not names:
            return None
        collections = [self.manager.get(collection) for collection in names]
        configs = [self._reductions(collection) for collection in collections]
        return Plan(
            any(config.save_raw_tensor for config in configs),
            any(config.save_shape for config in configs),
            tuple(dict.fromkeys(key for config in configs for key in config.wanted)),
            names,
            any(collection.save_histogram for collection in collections),
        )

    def collections_of(self, name: str) -> tuple[str, ...]:
        """Return the names of all collections, saved or not, that contain a tensor."""
        if name not in self._members:
            self._members[name] = tuple(
                collection.name for collection in self.manager if collection.members([name])
            )
        return self._members[name]

    def add_tensor(self, collection_name: str, tensor_name: str, *, include: bool = False) -> bool:
        """Add a tensor to a collection, which is created if missing.

        Parameters
        ----------
        include
            Whether to save the collection from now on.

        Returns
        -------
        bool
            Whether the collection is new, or newly included.
        """
        is_new = collection_name not in self.manager
        was_included = not is_new and self._is_included(collection_name)
        collection = self.manager.get(collection_name)
        if include:
            self._included.add(collection_name)
        if is_new and self.is_prepared:
            self._complete(collection)
        if tensor_name not in collection.tensor_names:
            collection.add_tensor_name(tensor_name)
            self._members.pop(tensor_name, None)
            self._plans.pop(tensor_name, None)
        return is_new or (include and not was_included)

    def _clear_caches(self) -> None:
        self._members.clear()
        self._plans.clear()


def _merged(config: SaveConfig, default: SaveConfig) -> SaveConfig:
    """Return a copy of `config` with missing modes filled from `default`."""
    merged = SaveConfig(config.mode_save_configs)
    merged.merge_default_save_config(default)
    return merged


def _names(names: str | Iterable[str] | None) -> list[str]:
    if names is None:
        return []
    try:
        return patterns.flatten(names if isinstance(names, str) else list(names))
    except TypeError:
        raise SMDebugTypeError(
            f"Patterns and collection names must be a list of strings, got {names!r}."
        ) from None


def _check_patterns(collection: Collection) -> None:
    for pattern in collection.include_regex:
        try:
            patterns.search(pattern, "")
        except (re.error, SMDebugValueError) as err:
            reason = str(err).rstrip(".")
            raise SMDebugValueError(
                f"Collection {collection.name!r} has an invalid pattern, got {pattern!r}: {reason}."
            ) from err
