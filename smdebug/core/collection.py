"""Collection: a named set of tensors, by name and by pattern; and the file that holds them."""

import contextlib
import copy
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from smdebug.core import patterns
from smdebug.core.reduction_config import ReductionConfig
from smdebug.core.save_config import SaveConfig
from smdebug.exceptions import (
    CorruptFileError,
    SMDebugError,
    SMDebugTypeError,
    TruncatedFileError,
)


class CollectionKeys:
    """The names of the collections that hooks fill by themselves."""

    DEFAULT: Final = "default"
    ALL: Final = "all"
    INPUTS: Final = "inputs"
    OUTPUTS: Final = "outputs"
    WEIGHTS: Final = "weights"
    GRADIENTS: Final = "gradients"
    LOSSES: Final = "losses"
    BIASES: Final = "biases"
    LAYERS: Final = "layers"
    SM_METRICS: Final = "sm_metrics"
    OPTIMIZER_VARIABLES: Final = "optimizer_variables"
    TENSORFLOW_SUMMARIES: Final = "tensorflow_summaries"
    METRICS: Final = "metrics"
    HYPERPARAMETERS: Final = "hyperparameters"
    PREDICTIONS: Final = "predictions"
    LABELS: Final = "labels"
    FEATURE_IMPORTANCE: Final = "feature_importance"
    AVERAGE_SHAP: Final = "average_shap"
    FULL_SHAP: Final = "full_shap"
    TREES: Final = "trees"


# One number a step: hooks save these as they are, without reductions and histograms.
SCALAR_COLLECTIONS: Final = frozenset(
    {
        CollectionKeys.LOSSES,
        CollectionKeys.METRICS,
        CollectionKeys.FEATURE_IMPORTANCE,
        CollectionKeys.AVERAGE_SHAP,
        CollectionKeys.SM_METRICS,
        CollectionKeys.TENSORFLOW_SUMMARIES,
    }
)


class Collection:
    """A named set of tensors: those in `tensor_names` and those that a pattern is found in.

    Parameters
    ----------
    name
        Name of the collection.
    include_regex
        Patterns, searched anywhere in a tensor's name.
    tensor_names
        Names that belong to it besides.
    reduction_config, save_config
        What the hook saves of its tensors, and when; dictionaries will do, here and when they
        are assigned. None: as the hook saves all others.
    save_histogram
        Whether the hook writes histograms for TensorBoard.

    Raises
    ------
    SMDebugTypeError, SMDebugValueError
        If a configuration cannot be understood, or a pattern is no string.
    """

    def __init__(
        self,
        name: str,
        include_regex: Iterable[str] | str | None = None,
        tensor_names: Iterable[str] | None = None,
        reduction_config: ReductionConfig | dict[str, Any] | None = None,
        save_config: SaveConfig | dict[Any, Any] | None = None,
        save_histogram: bool = True,
    ) -> None:
        self.name = name
        self.include_regex: list[str] = []
        if include_regex:
            self.include(include_regex)
        self._tensor_names: set[str] = set(tensor_names or ())
        self._reduction_config: ReductionConfig | None = None
        self._save_config: SaveConfig | None = None
        self.reduction_config = reduction_config
        self.save_config = save_config
        self.save_histogram = save_histogram

    @property
    def tensor_names(self) -> set[str]:
        """The names that belong to the collection whatever its patterns say."""
        return self._tensor_names

    @tensor_names.setter
    def tensor_names(self, names: Iterable[str]) -> None:
        if not isinstance(names, (list, set, frozenset, tuple)):
            msg = f"Tensor names must be a list or a set, got {names!r}."
            raise SMDebugTypeError(msg)
        self._tensor_names = set(names)

    @property
    def reduction_config(self) -> ReductionConfig | None:
        """What the hook saves of each tensor."""
        return self._reduction_config

    @reduction_config.setter
    def reduction_config(self, config: ReductionConfig | dict[str, Any] | None) -> None:
        self._reduction_config = None if config is None else ReductionConfig.parse(config)

    @property
    def save_config(self) -> SaveConfig | None:
        """At which steps the hook saves."""
        return self._save_config

    @save_config.setter
    def save_config(self, config: SaveConfig | dict[Any, Any] | None) -> None:
        self._save_config = None if config is None else SaveConfig.parse(config)

    def include(self, *include_patterns: object) -> None:
        """Add patterns: strings, or nested lists of strings."""
        try:
            self.include_regex.extend(patterns.flatten(list(include_patterns)))
        except TypeError as err:
            raise SMDebugTypeError(str(err)) from None

    def add_tensor_name(self, tname: str) -> None:
        """Add one tensor by name."""
        self._tensor_names.add(tname)

    def remove_tensor_name(self, tname: str) -> None:
        """Remove one tensor that was added by name; patterns go on matching it."""
        self._tensor_names.discard(tname)

    def members(self, names: Iterable[str]) -> list[str]:
        """Return those of `names` that belong to the collection, in their order.

        Raises
        ------
        re.error, SMDebugValueError
            If a pattern cannot be used.
        """
        wanted = self.include_regex
        return [
            name
            for name in names
            if name in self._tensor_names
            or any(patterns.search(pattern, name) for pattern in wanted)
        ]

    def copy(self) -> "Collection":
        """Return a collection of its own with the same content."""
        return copy.deepcopy(self)

    def absorb(self, other: "Collection") -> None:
        """Add what `other` holds and this one does not."""
        self._tensor_names |= other.tensor_names
        known = set(self.include_regex)
        self.include_regex += [one for one in other.include_regex if one not in known]

    def to_json_dict(self) -> dict[str, Any]:
        """Return the object that stands in a collections file."""
        reductions, saving = self.reduction_config, self.save_config
        return {
            "name": self.name,
            "include_regex": list(self.include_regex),
            "tensor_names": sorted(self._tensor_names),
            "reduction_config": None if reductions is None else reductions.to_json_dict(),
            "save_config": None if saving is None else saving.to_json_dict(),
            "save_histogram": self.save_histogram,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Collection) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return (
            f"Collection({self.name!r}, include_regex={self.include_regex!r}, "
            f"tensor_names={sorted(self._tensor_names)!r})"
        )


class _CollectionJson(msgspec.Struct):
    name: str
    include_regex: list[str] | str | None = None
    tensor_names: list[str] | None = None
    reduction_config: Any = None
    save_config: Any = None
    save_histogram: bool = True


class _MetaJson(msgspec.Struct):
    num_workers: int | str


class _FileJson(msgspec.Struct, forbid_unknown_fields=True):
    collections: dict[str, _CollectionJson]
    meta: _MetaJson = msgspec.field(name="_meta")


class CollectionsFile(msgspec.Struct, frozen=True):
    """One worker's collections, and how many workers write the trial."""

    collections: dict[str, Collection]
    num_workers: int


_DECODER = msgspec.json.Decoder(_FileJson)


def parse_collections(data: memoryview, key: str) -> CollectionsFile:
    """Return the content of a collections file.

    Raises
    ------
    TruncatedFileError, CorruptFileError
        If `data` is no such file.
    """
    if not data:
        raise TruncatedFileError(key, "a JSON object", "an empty file")
    try:
        document = _DECODER.decode(data)
        num_workers = int(document.meta.num_workers)
    except (msgspec.DecodeError, ValueError, RecursionError) as err:
        cls = TruncatedFileError if "truncated" in str(err) else CorruptFileError
        raise cls(key, "collections and their _meta", str(err).rstrip(".")) from err
    if num_workers < 1:
        raise CorruptFileError(key, "at least 1 worker", str(num_workers))
    found = {one.name: _collection(one) for one in document.collections.values()}
    return CollectionsFile(found, num_workers)


def _collection(one: _CollectionJson) -> Collection:
    """Return a collection; of its configurations, which no reader needs, what is understood."""
    found = Collection(
        one.name, one.include_regex or None, one.tensor_names, save_histogram=one.save_histogram
    )
    with contextlib.suppress(SMDebugError):
        found.reduction_config = one.reduction_config
    with contextlib.suppress(SMDebugError):
        found.save_config = one.save_config
    return found
