"""HookConfig: the configuration of a hook, read from the JSON file of a training job."""

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import msgspec

from rule_core.environment import ON_SAGEMAKER
from rule_core.exceptions import SMDebugError, SMDebugValueError
from rule_core.logger import get_logger
from rule_core.model.collection import Collection
from rule_core.model.reduction_config import ReductionConfig, flag, split
from rule_core.model.save_config import (
    DEFAULT_INTERVAL,
    SaveConfig,
    SaveConfigMode,
    interval,
    listed_steps,
    parse_integer,
)
from rule_core.modes import ModeKeys
from rule_core.saving.presets import PRESETS, Preset

CONFIG_FILE_PATH_ENV_STR: Final = "SMDEBUG_CONFIG_FILE_PATH"
DEFAULT_CONFIG_FILE: Final = "/opt/ml/input/config/debughookconfig.json"
DEFAULT_OUT_DIR: Final = "/opt/ml/output/tensors"
# SageMaker configures TensorBoard in a separate file.
TENSORBOARD_FILE_VARIABLE: Final = "TENSORBOARD_CONFIG_FILE_PATH"
DEFAULT_TENSORBOARD_FILE: Final = "/opt/ml/input/config/tensorboardoutputconfig.json"
DEFAULT_TENSORBOARD_DIR: Final = "/opt/ml/output/tensorboard"


Json = dict[str, Any]
T = TypeVar("T", dict[str, Any], list[Any], str)


def _steps(label: str, value: object) -> list[int]:
    """Parse a list of steps, or a string of comma-separated steps."""
    if isinstance(value, str):
        value = [parse_integer(label, step) for step in value.split(",")]
    return listed_steps(label, value)


_SAVING: Final[Mapping[str, Callable[[str, object], object]]] = {
    "save_interval": interval,
    "save_steps": _steps,
    "start_step": parse_integer,
    "end_step": parse_integer,
}
_REDUCTIONS: Final = ("reductions", "save_raw_tensor", "save_shape")
_SAVE_KEYS: Final = frozenset(
    prefix + key
    for key in _SAVING
    for prefix in ("", *(f"{mode.name.lower()}." for mode in ModeKeys))
)
_FILE_KEYS: Final = frozenset(
    {"S3OutputPath", "LocalPath", "HookParameters", "CollectionConfigurations"}
)
_HOOK_KEYS: Final = _SAVE_KEYS | {
    *_REDUCTIONS,
    "include_regex",
    "save_all",
    "include_workers",
    "export_tensorboard",
    "tensorboard_dir",
    "preset",
}
_ENTRY_KEYS: Final = frozenset({"CollectionName", "CollectionParameters"})
_COLLECTION_KEYS: Final = _SAVE_KEYS | {*_REDUCTIONS, "include_regex", "save_histogram"}


@dataclass(frozen=True)
class HookConfig:
    """The arguments of a hook, by their names.

    Parameters
    ----------
    out_dir
        Root of the trial.
    tensorboard_dir, export_tensorboard
        Folder of TensorBoard files, and whether they are requested.
    dry_run
        Always False: smdebug documents the key and ignores it.
    save_all
        Save every tensor.
    include_workers
        ``all``, ``one`` or ``none``.
    include_regex
        Patterns of the collection ``default``.
    include_collections
        Names of the collections in the file.
    save_config, reduction_config
        Defaults of collections.
    collections
        The collections in the file, each with a save configuration of all modes. The hook's
        defaults fill what the file leaves out.
    preset
        What to measure in addition; see `smdebug.core.hook.Hook`.
    """

    out_dir: str
    tensorboard_dir: str | None
    export_tensorboard: bool
    dry_run: bool
    save_all: bool
    include_workers: str
    include_regex: list[str] | None
    include_collections: list[str] | None
    save_config: SaveConfig
    reduction_config: ReductionConfig | None
    collections: tuple[Collection, ...]
    preset: Preset = "none"


def load_hook_config(
    json_file_path: str | os.PathLike[str] | None = None, *, save_interval: int = DEFAULT_INTERVAL
) -> HookConfig:
    """Read a hook configuration from a JSON file.

    Parameters
    ----------
    json_file_path
        The file; by default the value of ``SMDEBUG_CONFIG_FILE_PATH``, then
        ``/opt/ml/input/config/debughookconfig.json``.
    save_interval
        The hook's default. Collections in the file default to 500 regardless.

    Raises
    ------
    OSError
        If the file cannot be read.
    SMDebugValueError
        If the file contains an invalid value. Unknown keys are ignored with a warning.
    """
    path = os.fspath(
        json_file_path or os.environ.get(CONFIG_FILE_PATH_ENV_STR) or DEFAULT_CONFIG_FILE
    )
    try:
        return _hook_config(path, _read(path), save_interval)
    except (SMDebugError, msgspec.DecodeError, RecursionError) as err:
        raise SMDebugValueError(
            f"Hook configuration {path!r} cannot be used: {str(err).rstrip('.')}."
        ) from err


def _read(path: str) -> Json:
    """Return the JSON object in a file; ``{}`` for an empty file."""
    document = msgspec.json.decode(Path(path).read_bytes() or b"{}")
    return _of_type(dict, "The file", document)


def _of_type(kind: type[T], label: str, value: object) -> T:
    """Return `value` if it is of a type, and an empty one for null."""
    if value is None:
        return kind()
    if isinstance(value, kind):
        return value
    names = {dict: "an object", list: "a list", str: "a string"}
    raise SMDebugValueError(f"{label} must be {names[kind]}, got {value!r}.")


def _hook_config(path: str, document: Json, save_interval: int) -> HookConfig:
    _Section(path, "the file", document).warn_of_unknown(_FILE_KEYS)
    hook = _Section.of(path, "HookParameters", document.get("HookParameters"))
    hook.warn_of_unknown(_HOOK_KEYS)
    collections = _collections(path, document.get("CollectionConfigurations"), hook)
    out_dir = _of_type(str, "LocalPath", document.get("LocalPath")) or DEFAULT_OUT_DIR
    tensorboard_dir, export = _tensorboard(hook, out_dir)
    return HookConfig(
        out_dir=out_dir,
        tensorboard_dir=tensorboard_dir,
        export_tensorboard=export,
        dry_run=False,
        save_all=hook.flag("save_all", default=False),
        include_workers=hook.workers(),
        include_regex=hook.texts("include_regex") or None,
        include_collections=list(dict.fromkeys(collection.name for collection in collections))
        or None,
        save_config=_save_config({"save_interval": save_interval}, hook),
        reduction_config=hook.reduction_config(),
        collections=collections,
        preset=hook.preset(),
    )


def _collections(path: str, entries: object, hook: "_Section") -> tuple[Collection, ...]:
    collections = []
    for index, value in enumerate(_of_type(list, "CollectionConfigurations", entries)):
        label = f"CollectionConfigurations[{index}]"
        entry = _Section.of(path, label, value)
        entry.warn_of_unknown(_ENTRY_KEYS)
        name = entry.params.get("CollectionName")
        if not isinstance(name, str) or not name:
            raise SMDebugValueError(f"CollectionName of {label} must be a name, got {name!r}.")
        params = _Section.of(path, f"collection {name!r}", entry.params.get("CollectionParameters"))
        params.warn_of_unknown(_COLLECTION_KEYS)
        collections.append(
            Collection(
                name,
                params.texts("include_regex"),
                None,
                params.reduction_config(),
                _save_config({}, hook, params),
                params.flag("save_histogram", default=True),
            )
        )
    return tuple(collections)


def _tensorboard(hook: "_Section", out_dir: str) -> tuple[str | None, bool]:
    """Return the folder for TensorBoard files, and whether they are requested."""
    if ON_SAGEMAKER in os.environ:
        path = os.environ.get(TENSORBOARD_FILE_VARIABLE) or DEFAULT_TENSORBOARD_FILE
        if not Path(path).exists():
            return None, False
        value = _of_type(str, f"LocalPath of {path!r}", _read(path).get("LocalPath"))
        return value or DEFAULT_TENSORBOARD_DIR, True
    export = hook.flag("export_tensorboard", default=False)
    folder = _of_type(str, "tensorboard_dir", hook.params.get("tensorboard_dir")) or None
    return folder or (f"{out_dir}/tensorboard" if export else None), export


@dataclass(frozen=True, slots=True)
class _Section:
    """One JSON object of the file."""

    file: str
    name: str
    params: Json

    @classmethod
    def of(cls, file: str, name: str, params: object) -> "_Section":
        return cls(file, name, _of_type(dict, name, params))

    def label(self, key: str) -> str:
        return f"{key} of {self.name}"

    def warn(self, key: str, text: str) -> None:
        get_logger("hook").warning("Hook configuration %r: %s %s", self.file, self.label(key), text)

    def warn_of_unknown(self, valid_keys: frozenset[str]) -> None:
        for key in self.params.keys() - valid_keys:
            matches = difflib.get_close_matches(key, valid_keys, n=1)
            hint = f" Did you mean {matches[0]!r}?" if matches else ""
            self.warn(repr(key), f"is not known and has no effect.{hint}")

    def flag(self, key: str, *, default: bool) -> bool:
        value = self.params.get(key)
        return default if value is None else flag(self.label(key), value)

    def texts(self, key: str) -> list[str]:
        try:
            return split(self.params.get(key))
        except TypeError:
            raise SMDebugValueError(
                f"{self.label(key)} must be a string, got {self.params[key]!r}."
            ) from None

    def workers(self) -> str:
        value = self.params.get("include_workers")
        return value if value in ("all", "none") else "one"

    def preset(self) -> Preset:
        value = self.params.get("preset") or "none"
        if value not in PRESETS:
            raise SMDebugValueError(
                f"{self.label('preset')} must be one of {', '.join(PRESETS)}, got {value!r}."
            )
        return cast("Preset", value)

    def reduction_config(self) -> ReductionConfig | None:
        if "reductions" in self.params:
            try:
                return ReductionConfig.from_dict(self.params)
            except SMDebugValueError as err:
                raise SMDebugValueError(f"{self.name}: {err}") from None
        for key in ("save_raw_tensor", "save_shape"):
            if key in self.params:
                self.warn(key, "has no effect without reductions.")
        return None

    def saving(self, mode: ModeKeys) -> Json:
        """Return the step settings of a mode; settings of the mode alone take precedence."""
        settings = {}
        for prefix in ("", f"{mode.name.lower()}."):
            for key, parse in _SAVING.items():
                value = self.params.get(prefix + key)
                if value is not None:
                    settings[key] = parse(self.label(prefix + key), value)
        return settings


def _save_config(default: Json, *sections: _Section) -> SaveConfig:
    """Return the configuration of all modes; later sections take precedence.

    The default is an interval: it does not apply where the sections list steps.
    """
    modes = {}
    for mode in ModeKeys:
        values: Json = {}
        for section in sections:
            values |= section.saving(mode)
        modes[mode] = SaveConfigMode(**(values if values.get("save_steps") else default | values))
    return SaveConfig(modes)
