"""Decisions: which collections a hook saves at a step, and what it saves of each tensor."""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from smdebug.core import patterns
from smdebug.core.collection import SCALAR_COLLECTIONS, Collection, CollectionKeys
from smdebug.core.collection_manager import CollectionManager
from smdebug.core.logger import get_logger
from smdebug.core.modes import ModeKeys
from smdebug.core.reduction_config import ReductionConfig
from smdebug.core.save_config import SaveConfig, SaveConfigMode
from smdebug.exceptions import InvalidCollectionConfiguration, SMDebugTypeError, SMDebugValueError

# What training makes and evaluation leaves as it was.
TRAINING_ONLY: Final = frozenset({CollectionKeys.GRADIENTS, CollectionKeys.OPTIMIZER_VARIABLES})
_RAW_ONLY: Final = ReductionConfig(save_raw_tensor=True)
# Names that are remembered; a loop that makes up new names for ever starts them afresh.
_MOST_NAMES: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class Plan:
    """What is saved of one tensor at a step.

    Parameters
    ----------
    raw, shape
        Whether its values, its shape are.
    wanted
        Its reductions, as (operation, of the magnitudes).
    collections
        Names of the saved collections that it belongs to.
    """

    raw: bool
    shape: bool
    wanted: tuple[tuple[str, bool], ...]
    collections: tuple[str, ...]


class Decisions:
    """What a hook saves when. Free of I/O and of any framework.

    Parameters
    ----------
    defaults
        Patterns of the collections that the framework's hook always has, by name.
    default_included
        Names of those that are saved unless they are configured otherwise.
    save_config
        At which steps, where a collection does not say; modes left out are saved by default.
    reduction_config
        What of a tensor, where a collection does not say; its values by default.
    include_regex
        Patterns of the collection ``default``, which is saved then.
    include_collections
        Names of collections to save besides; ``all`` stands for every one.
    save_all
        Save every tensor.
    collections
        Configured collections; patterns and names join those of one that is there already.

    filled
        Names of collections that the framework's hook fills by itself once it meets their tensors.
    collection_type
        Class of the framework's collections.

    Raises
    ------
    SMDebugTypeError, SMDebugValueError
        If an argument cannot be understood.

    Examples
    --------
    >>> decisions = Decisions({"losses": ["loss"]}, ["losses"], save_config=SaveConfig(None, 10))
    >>> decisions.prepare()
    >>> decisions.saving(ModeKeys.TRAIN, 5)
    frozenset()
    >>> decisions.plan("my_loss", decisions.saving(ModeKeys.TRAIN, 20))
    Plan(raw=True, shape=False, wanted=(), collections=('losses',))
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
        for one in collections:
            self._configure(one)
        for name in self._included.intersection(filled):
            self.manager.get(name)
        self._members: dict[str, tuple[str, ...]] = {}
        self._plans: dict[str, dict[frozenset[str], Plan | None]] = {}
        self._sets: dict[frozenset[str], frozenset[str]] = {}

    def _configure(self, given: Collection) -> None:
        if given.name not in self.manager:
            self.manager.add(given)
            return
        one = self.manager.get(given.name)
        one.absorb(given)
        one.reduction_config = given.reduction_config or one.reduction_config
        one.save_config = given.save_config or one.save_config
        one.save_histogram = given.save_histogram

    @property
    def included(self) -> frozenset[str]:
        """Names of the collections there are that are saved at their steps."""
        return frozenset(one.name for one in self.manager if self._is_included(one.name))

    def _is_included(self, name: str) -> bool:
        return name in self._included or CollectionKeys.ALL in self._included

    def include(self, collection: str | Collection) -> None:
        """Add a collection, an object in the place of one of its name, and save it."""
        self.manager.add(collection)
        name = collection if isinstance(collection, str) else collection.name
        self._included.add(name)
        if self.is_prepared:
            self._complete(self.manager.get(name))
            self._forget()

    def prepare(self) -> None:
        """Check the collections and fill what they leave open; call it before the first step.

        Raises
        ------
        InvalidCollectionConfiguration
            If a collection that is none of the framework's has neither patterns nor names.
        SMDebugValueError
            If a pattern cannot be used.
        """
        for one in self.manager:
            if one.name not in self._defaults and not one.include_regex and not one.tensor_names:
                raise InvalidCollectionConfiguration(one.name)
            _check_patterns(one)
            self._complete(one)
        self._warn_of_unknown()
        self._forget()
        self.is_prepared = True

    def _complete(self, one: Collection) -> None:
        one.reduction_config = self._reductions(one)
        one.save_config = _merged(one.save_config or self.save_config, self.save_config)
        if one.name in SCALAR_COLLECTIONS:
            one.save_histogram = False

    def _warn_of_unknown(self) -> None:
        known = self.manager.get_collections()
        for name in sorted(self._included - known.keys() - self._defaults):
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            get_logger("hook").warning("There is no collection %r to save.%s", name, hint)

    def saving(self, mode: ModeKeys, mode_step: int) -> frozenset[str]:
        """Return the names of the collections that are saved at a step.

        Parameters
        ----------
        mode
            Mode of the step.
        mode_step
            Its number in that mode; in GLOBAL the global step.
        """
        in_training = mode in (ModeKeys.TRAIN, ModeKeys.GLOBAL)
        names = frozenset(
            one.name
            for one in self.manager
            if self._is_included(one.name)
            and (in_training or one.name not in TRAINING_ONLY)
            and self._save_config(one, mode).should_save_step(mode_step)
        )
        # The same object each time: it keeps its hash.
        return self._sets.setdefault(names, names)

    def _save_config(self, one: Collection, mode: ModeKeys) -> SaveConfigMode:
        """Return what holds for a mode, also of a collection that was made after `prepare`."""
        config = one.save_config and one.save_config.get_save_config(mode)
        return config or self.save_config.get_save_config(mode) or SaveConfigMode()

    def _reductions(self, one: Collection) -> ReductionConfig:
        if one.name in SCALAR_COLLECTIONS:
            return _RAW_ONLY
        return one.reduction_config or self.reduction_config

    def plan(self, name: str, saving: frozenset[str]) -> Plan | None:
        """Return what is saved of a tensor when the collections `saving` are; None: nothing.

        A name belongs for ever to the collections that held or matched it when it was first asked
        for, unless `add_tensor` adds it to others.
        """
        plans = self._plans.get(name)
        if plans is None:
            if len(self._plans) >= _MOST_NAMES:
                self._forget()
            plans = self._plans[name] = {}
        try:
            return plans[saving]
        except KeyError:
            plan = plans[saving] = self._planned(name, saving)
            return plan

    def _planned(self, name: str, saving: frozenset[str]) -> Plan | None:
        names = tuple(one for one in self.collections_of(name) if one in saving)
        if not names:
            return None
        configs = [self._reductions(self.manager.get(one)) for one in names]
        return Plan(
            any(one.save_raw_tensor for one in configs),
            any(one.save_shape for one in configs),
            tuple(dict.fromkeys(wanted for one in configs for wanted in one.wanted)),
            names,
        )

    def collections_of(self, name: str) -> tuple[str, ...]:
        """Return the names of all collections, saved or not, that list or match a tensor's."""
        if name not in self._members:
            self._members[name] = tuple(one.name for one in self.manager if one.members([name]))
        return self._members[name]

    def add_tensor(self, collection_name: str, tensor_name: str, *, include: bool = False) -> bool:
        """Make a tensor a member of a collection, which is made if it is not there.

        Parameters
        ----------
        include
            Save the collection at its steps from now on.

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

    def _forget(self) -> None:
        self._members.clear()
        self._plans.clear()


def _merged(config: SaveConfig, default: SaveConfig) -> SaveConfig:
    """Return a configuration of its own with all modes filled."""
    merged = SaveConfig(config.mode_save_configs)
    merged.merge_default_save_config(default)
    return merged


def _names(given: str | Iterable[str] | None) -> list[str]:
    if given is None:
        return []
    try:
        return patterns.flatten(given if isinstance(given, str) else list(given))
    except TypeError:
        msg = f"What a hook includes must be a list of strings, got {given!r}."
        raise SMDebugTypeError(msg) from None


def _check_patterns(one: Collection) -> None:
    for pattern in one.include_regex:
        try:
            patterns.search(pattern, "")
        except (re.error, SMDebugValueError) as err:
            reason = str(err).rstrip(".")
            msg = f"Collection {one.name!r} has an unusable pattern, got {pattern!r}: {reason}."
            raise SMDebugValueError(msg) from err
