"""Collection: a named set of tensors, by name and by pattern, and the collections file."""

import contextlib
import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

import msgspec

from rule_core.exceptions import (
    CorruptFileError,
    SMDebugError,
    SMDebugTypeError,
    SMDebugValueError,
    TruncatedFileError,
)
from rule_core.model import patterns
from rule_core.model.json_text import JsonText
from rule_core.model.reduction_config import ReductionConfig
from rule_core.model.save_config import SaveConfig


class CollectionKeys:
    """The names of the collections that hooks fill automatically."""

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
    GRADIENT_NORMS: Final = "gradient_norms"
    LEARNING_RATES: Final = "learning_rates"
    LOSS_SCALES: Final = "loss_scales"


# One number per step: hooks save the values, without reductions and histograms.
SCALAR_COLLECTIONS: Final = frozenset(
    {
        CollectionKeys.LOSSES,
        CollectionKeys.METRICS,
        CollectionKeys.FEATURE_IMPORTANCE,
        CollectionKeys.AVERAGE_SHAP,
        CollectionKeys.SM_METRICS,
        CollectionKeys.TENSORFLOW_SUMMARIES,
        CollectionKeys.GRADIENT_NORMS,
        CollectionKeys.LEARNING_RATES,
        CollectionKeys.LOSS_SCALES,
    }
)

# The collection of each namespace: the part of a tensor's name before the first slash.
_NAMESPACES: Final = {
    "gradient": CollectionKeys.GRADIENTS,
    "gradients": CollectionKeys.GRADIENTS,
    "hyperparameters": CollectionKeys.HYPERPARAMETERS,
    "feature_importance": CollectionKeys.FEATURE_IMPORTANCE,
    "average_shap": CollectionKeys.AVERAGE_SHAP,
    "full_shap": CollectionKeys.FULL_SHAP,
    "trees": CollectionKeys.TREES,
}
# Standard collections; their patterns do not match names in other namespaces.
_STANDARD: Final = frozenset(
    value for name, value in vars(CollectionKeys).items() if name.isupper()
) - {CollectionKeys.ALL, CollectionKeys.DEFAULT}
_PARAMETERS: Final = frozenset({CollectionKeys.WEIGHTS, CollectionKeys.BIASES})
# What hooks measure besides tensors of the model; it belongs to collections by name only.
_MEASURED: Final = re.compile(
    r"optimizer/(?:lr|not_held|update_norm)/|optimizer/(?:trained|replaced)_parameters\Z"
    r"|optimizer/(?:\d+/)?(?:(?:stale_)?grad_norm|loss_scale|skipped)"
    r"|parameters/(?:requires_grad|is_sharded)/|model/(?:execution_order/|(?:training_mode|idle_models)\Z)"
    r"|attention/.*/(?:entropy|future_mass)\Z|router/.*/load\Z|activation_statistics/"
    r"|fingerprints/(?:inputs|labels)\Z"
)
_ACTIVATION: Final = re.compile(r"_(?:in|out)put_\d+$")


class Collection(JsonText):
    """A named set of tensors: those in `tensor_names` and those whose names match a pattern.

    Parameters
    ----------
    name
        The name of the collection.
    include_regex
        Patterns to search for anywhere in a tensor's name.
    tensor_names
        Additional names of tensors.
    reduction_config, save_config
        What the hook saves of its tensors, and when; dictionaries are accepted, also in
        assignments. None means the configuration of the hook.
    save_histogram
        Whether the hook writes histograms for TensorBoard.

    Raises
    ------
    SMDebugTypeError, SMDebugValueError
        If a configuration is invalid, or a pattern is not a string.
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
        self.fixed_names: set[str] | frozenset[str] = set(tensor_names or ()) or _NO_NAMES
        self._reduction_config: ReductionConfig | None = None
        self._save_config: SaveConfig | None = None
        self.reduction_config = reduction_config
        self.save_config = save_config
        self.save_histogram = save_histogram

    @property
    def tensor_names(self) -> set[str]:
        """The names that belong to the collection regardless of its patterns."""
        if isinstance(self.fixed_names, frozenset):
            self.fixed_names = set()
        return self.fixed_names

    @tensor_names.setter
    def tensor_names(self, names: Iterable[str]) -> None:
        if not isinstance(names, (list, set, frozenset, tuple)):
            raise SMDebugTypeError(f"Tensor names must be a list or a set, got {names!r}.")
        self.fixed_names = set(names)

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
        self.tensor_names.add(tname)

    def has_tensor_name(self, tname: str) -> bool:
        """Return whether a tensor was added by name."""
        return tname in self.fixed_names

    def remove_tensor_name(self, tname: str) -> None:
        """Remove one tensor that was added by name; patterns may still match it."""
        self.tensor_names.discard(tname)

    def members(self, names: Iterable[str]) -> list[str]:
        """Return the `names` that belong to the collection, in their order.

        A pattern of a standard collection such as ``weights`` does not match names of another
        collection such as ``feature_importance/weight/age``, unless it contains its namespace.

        Raises
        ------
        re.error, SMDebugValueError
            If a pattern is invalid.
        """
        return [
            name
            for name in names
            if name in self.fixed_names
            or any(
                patterns.search(pattern, name) and not self._is_foreign(name, pattern)
                for pattern in self.include_regex
            )
        ]

    def _is_foreign(self, name: str, pattern: str) -> bool:
        """Return whether a name that a pattern matches belongs to another collection."""
        if self.name not in _STANDARD:
            return False
        if _MEASURED.match(name):
            return True
        if self.name in _PARAMETERS and _ACTIVATION.search(name):
            return "put" not in pattern
        space, slash, _ = name.partition("/")
        owner = _NAMESPACES.get(space, self.name) if slash else self.name
        return owner != self.name and space not in pattern

    def copy(self) -> "Collection":
        """Return a deep copy."""
        return copy.deepcopy(self)

    def absorb(self, other: "Collection") -> None:
        """Add the patterns and names of `other`."""
        if other.fixed_names:
            self.tensor_names.update(other.tensor_names)
        own = set(self.include_regex)
        self.include_regex += [pattern for pattern in other.include_regex if pattern not in own]

    def to_json_dict(self) -> dict[str, Any]:
        """Return the JSON object for a collections file."""
        reductions, saving = self.reduction_config, self.save_config
        return {
            "name": self.name,
            "include_regex": list(self.include_regex),
            "tensor_names": sorted(self.fixed_names),
            "reduction_config": None if reductions is None else reductions.to_json_dict(),
            "save_config": None if saving is None else saving.to_json_dict(),
            "save_histogram": self.save_histogram,
        }

    @classmethod
    def from_dict(cls, params: Mapping[str, Any]) -> Self:
        """Return the collection for a JSON object; only ``name`` is required.

        Raises
        ------
        SMDebugTypeError, SMDebugValueError
            If `params` is not such an object.
        """
        if not isinstance(params.get("name"), str):
            raise SMDebugValueError(
                f"A collection must be an object with a name, got {params!r:.200}."
            )
        return cls(
            **{key: params[key] for key in _CollectionJson.__struct_fields__ if key in params}
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Collection) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return (
            f"Collection({self.name!r}, include_regex={self.include_regex!r}, "
            f"tensor_names={sorted(self.fixed_names)!r})"
        )


_NO_NAMES: Final = frozenset[str]()  # shared: most collections have only patterns


class _CollectionJson(msgspec.Struct, gc=False):
    name: str
    include_regex: list[str] | str | None = None
    tensor_names: list[str] | None = None
    reduction_config: Any = None
    save_config: Any = None
    save_histogram: bool = True


class _CollectionsMeta(msgspec.Struct):
    num_workers: int | str


class _CollectionsDocument(msgspec.Struct, forbid_unknown_fields=True):
    collections: dict[str, _CollectionJson]
    meta: _CollectionsMeta = msgspec.field(name="_meta")


class CollectionsFile(msgspec.Struct, frozen=True):
    """One worker's collections, and the number of workers that write the trial."""

    collections: dict[str, Collection]
    num_workers: int


_DECODER = msgspec.json.Decoder(_CollectionsDocument)


def parse_collections(data: memoryview, key: str) -> CollectionsFile:
    """Parse a collections file.

    Raises
    ------
    TruncatedFileError, CorruptFileError
        If `data` is not a collections file.
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
    collections: dict[str, Collection] = {}
    for name in [*document.collections]:  # pop: limits the peak memory
        collection = _collection(document.collections.pop(name))
        collections[collection.name] = collection
    return CollectionsFile(collections, num_workers)


def _collection(fields: _CollectionJson) -> Collection:
    """Return a collection without invalid configurations, which no reader needs."""
    collection = Collection(
        fields.name, (), fields.tensor_names, save_histogram=fields.save_histogram
    )
    regex = fields.include_regex or []
    collection.include_regex = [regex] if isinstance(regex, str) else regex
    with contextlib.suppress(SMDebugError):
        collection.reduction_config = fields.reduction_config
    with contextlib.suppress(SMDebugError):
        collection.save_config = fields.save_config
    return collection
