"""Formats: the formats of this package and those that other packages register."""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from rule_core.exceptions import SMDebugValueError
from rule_core.failures import attempt, words_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.metadata import EntryPoint

    from rule_core.sources.format import SourceFormat

GROUP: Final = "rule_runner.sources"  # of entry points
CHECKPOINTS: Final = "safetensors"
# If several describe one run, the first is read: those that are written at once and in full
# precision come before those that are written rarely or rounded.
MODULES: Final = {
    "wandb": "wandb.format",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow.format",
    "jsonl": "rows.json_lines",
    "csv": "rows.csv_table",
    "trainer-state": "documents.trainer_state",
    "json": "documents.json_document",
    "yaml": "documents.yaml_document",
    "npz": "documents.npz_document",
    "parquet": "documents.parquet_document",
    "notebook": "documents.notebook",
    "text-log": "rows.text_log",
    "headerless": "rows.headerless_table",
    CHECKPOINTS: "safetensors",
}


class Formats(NamedTuple):
    """The formats that can be read.

    Attributes
    ----------
    by_kind
        Those of other packages first, then those of this one in the order of `MODULES`.
    problems
        A sentence for each format that cannot be loaded, by kind.
    """

    by_kind: "dict[str, SourceFormat]"
    problems: dict[str, str]


@cache
def formats() -> Formats:
    """Return the formats that can be read; each is loaded once."""
    from importlib.metadata import entry_points

    return load_formats(entry_points(group=GROUP))


def load_formats(plugins: "Iterable[EntryPoint]") -> Formats:
    """Return the formats of some entry points and of this package.

    A format of another package does not replace one of this package. The entry point's name is
    the kind.
    """
    by_kind: dict[str, SourceFormat] = {}
    problems: dict[str, str] = {}
    for plugin in sorted(plugins, key=lambda plugin: plugin.name):
        loaded = _load(plugin)
        if isinstance(loaded, str):
            problems[plugin.name] = loaded
        else:
            by_kind[plugin.name] = loaded
    for kind, name in MODULES.items():
        by_kind[kind] = import_module(f"rule_core.sources.{name}").FORMAT
    return Formats(by_kind, problems)


def _load(plugin: "EntryPoint") -> "SourceFormat | str":
    """Return the format of an entry point, or a sentence on why it cannot be used."""
    subject = f"Format {plugin.name!r} of the entry point {plugin.value!r}"
    if plugin.name in MODULES:
        return f"{subject} is ignored: a format of rule-runner has the same name."

    def load() -> object:
        loaded = plugin.load()
        return loaded() if isinstance(loaded, type) else loaded

    instance = attempt(load, lambda err: f"{subject} cannot be loaded: {reason_of(err)}.")
    if isinstance(instance, str):
        return instance
    for name in ("kind", "recognize", "open"):
        if not hasattr(instance, name):
            return f"{subject} is not a SourceFormat: it lacks {name!r}."
    source_format = cast("SourceFormat", instance)
    if source_format.kind != plugin.name:
        return f"{subject} calls itself {source_format.kind!r}. Give the entry point that name."
    return source_format


def reason_of(err: BaseException) -> str:
    """Return the type and text of an exception of other code, on one line."""
    text = words_of(err)
    return f"{type(err).__name__}{text and f': {text}'}"


def format_named(kind: str) -> "SourceFormat":
    """Return the format of a kind.

    Raises
    ------
    SMDebugValueError
        If it cannot be loaded, or does not exist.
    """
    available = formats()
    if kind in available.by_kind:
        return available.by_kind[kind]
    raise SMDebugValueError(available.problems.get(kind, f"Format {kind!r} is not installed."))
