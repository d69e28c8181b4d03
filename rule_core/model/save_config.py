"""SaveConfig: the steps of each mode at which a hook saves."""

import copy
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, cast

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.model.json_text import JsonText
from rule_core.modes import ModeKeys

DEFAULT_INTERVAL: Final = 500


def parse_integer(key: str, value: object) -> int:
    """Convert a number or text to an integer; `key` names it in the error.

    Raises
    ------
    SMDebugValueError
        If it is not an integer.

    >>> parse_integer("start_step", " 7"), parse_integer("start_step", 7.0)
    (7, 7)
    """
    try:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return int(value) if isinstance(value, str) else int(operator.index(cast("Any", value)))
    except (TypeError, ValueError):
        raise SMDebugValueError(f"{key} must be an integer, got {value!r}.") from None


def interval(key: str, value: object) -> int:
    """Convert `value` to an integer other than 0."""
    number = parse_integer(key, value)
    if number == 0:
        raise SMDebugValueError(f"{key} must be an integer other than 0, got {value!r}.")
    return number


def listed_steps(key: str, value: object) -> list[int]:
    """Convert `value` to a new list of integers."""
    try:
        return [int(operator.index(step)) for step in cast("Iterable[Any]", value)]
    except TypeError:
        raise SMDebugValueError(f"{key} must be a list of integers, got {value!r}.") from None


@dataclass(slots=True, init=False)
class SaveConfigMode:
    """The steps to save in one mode: listed steps, and steps at an interval in a range.

    Attributes are the parameters; assigned values are checked.

    Parameters
    ----------
    save_interval
        Multiples of the interval are saved, regardless of the start. Numbers may be text; without
        one, it is 500, or None if there are `save_steps`: exactly these are saved.
    start_step, end_step
        The range of the interval: ``start_step <= step < end_step``; unbounded without `end_step`.
    save_steps
        Additional steps, which may be outside the range.

    Raises
    ------
    SMDebugValueError
        If one of them is not an integer, or the interval is 0.

    Examples
    --------
    >>> config = SaveConfigMode(save_interval=3, start_step=2, end_step=7, save_steps=[10])
    >>> [step for step in range(20) if config.should_save_step(step)]
    [3, 6, 10]
    >>> SaveConfigMode(save_steps=[1, 5, 7]).should_save_step(0)
    False
    """

    save_interval: int | None
    start_step: int
    end_step: int | None
    save_steps: list[int]

    def __init__(
        self,
        save_interval: int | str | None = None,
        start_step: int | str | None = None,
        end_step: int | str | None = None,
        save_steps: Iterable[int] | None = None,
    ) -> None:
        self.save_interval = save_interval  # type: ignore[assignment]  # __setattr__ converts them
        self.start_step = start_step  # type: ignore[assignment]
        self.end_step = end_step  # type: ignore[assignment]
        self.save_steps = save_steps  # type: ignore[assignment]
        if save_interval is None and self.save_steps:
            object.__setattr__(self, "save_interval", None)

    def __setattr__(self, name: str, value: object) -> None:
        """Check and convert a value as the constructor does, and set the attribute."""
        value = _DEFAULTS.get(name) if value is None else value
        if value is not None:
            value = _CHECKS.get(name, parse_integer)(name, value)
        object.__setattr__(self, name, value)

    def should_save_step(self, step: int) -> bool:
        """Return whether to save a mode step."""
        if step in self.save_steps:
            return True
        if self.save_interval is None or step < self.start_step or step % self.save_interval:
            return False
        return self.end_step is None or step < self.end_step

    def to_json_dict(self) -> dict[str, Any]:
        """Return the JSON object for a collections file."""
        return {
            "save_interval": self.save_interval,
            "save_steps": list(self.save_steps),
            "start_step": self.start_step,
            "end_step": self.end_step,
        }

    @classmethod
    def from_dict(cls, params: Mapping[str, Any]) -> Self:
        """Return the configuration for a JSON object; missing keys have their defaults."""
        keys = ("save_interval", "start_step", "end_step", "save_steps")
        return cls(**{key: params[key] for key in keys if key in params})


_CHECKS: Final = {"save_interval": interval, "save_steps": listed_steps}
_DEFAULTS: Final = {"save_interval": DEFAULT_INTERVAL, "start_step": 0, "save_steps": ()}


class SaveConfig(JsonText):
    """The steps to save in each mode.

    Parameters
    ----------
    mode_save_configs
        Configurations by mode. The mapping is copied; missing modes are None until
        `merge_default_save_config` fills them.
    save_interval, start_step, end_step, save_steps
        The configuration of all modes without a mapping; see `SaveConfigMode`.

    Raises
    ------
    SMDebugValueError
        If a key of the mapping is not a mode, or a value is neither None nor a `SaveConfigMode`.

    Examples
    --------
    >>> config = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(save_interval=2)})
    >>> config.should_save_step(ModeKeys.TRAIN, 4)
    True
    >>> config.merge_default_save_config(SaveConfig())
    >>> config.get_save_config(ModeKeys.EVAL).save_interval
    500
    """

    def __init__(
        self,
        mode_save_configs: Mapping[ModeKeys, SaveConfigMode | None] | None = None,
        save_interval: int | str | None = None,
        start_step: int | str | None = None,
        end_step: int | str | None = None,
        save_steps: Iterable[int] | None = None,
    ) -> None:
        self.mode_save_configs: dict[ModeKeys, SaveConfigMode | None]
        if mode_save_configs is None:
            values = (save_interval, start_step, end_step, save_steps)
            self.mode_save_configs = {mode: SaveConfigMode(*values) for mode in ModeKeys}
            return
        self.mode_save_configs = dict.fromkeys(ModeKeys)
        for key, config in mode_save_configs.items():
            if config is None and isinstance(key, ModeKeys):
                continue
            self.set_save_config(key, config)

    def should_save_step(self, mode: ModeKeys, step: int) -> bool:
        """Return whether to save step `step` of `mode`.

        Raises
        ------
        SMDebugValueError
            If the mode has no configuration.
        """
        return self.get_save_config(mode).should_save_step(step)

    def get_save_config(self, mode: ModeKeys) -> SaveConfigMode:
        """Return the configuration of a mode.

        Raises
        ------
        SMDebugValueError
            If the mode has none.
        """
        config = self.mode_save_configs[mode]
        if config is None:
            raise SMDebugValueError(
                f"The save configuration has no mode {mode.name}, got {self!r}. "
                "Merge it with a default."
            )
        return config

    def set_save_config(self, mode: ModeKeys, save_config_mode: SaveConfigMode | None) -> None:
        """Configure one mode.

        Raises
        ------
        SMDebugValueError
            If `mode` is not a mode, or `save_config_mode` is not a `SaveConfigMode`.
        """
        # Training scripts are rarely type-checked.
        untyped: tuple[object, object] = (mode, save_config_mode)
        if not isinstance(untyped[0], ModeKeys) or not isinstance(untyped[1], SaveConfigMode):
            raise SMDebugValueError(
                "A save configuration maps ModeKeys to SaveConfigMode, "
                f"got {mode!r}: {untyped[1]!r}."
            )
        self.mode_save_configs[mode] = save_config_mode

    def merge_default_save_config(self, default_save_config: "SaveConfig") -> None:
        """Set the modes without a configuration to their default."""
        for mode, config in default_save_config.mode_save_configs.items():
            if self.mode_save_configs[mode] is None:
                self.mode_save_configs[mode] = config

    def to_json_dict(self) -> dict[str, Any]:
        """Return the JSON object for a collections file, with all modes as keys."""
        return {
            mode.name: None if config is None else config.to_json_dict()
            for mode, config in self.mode_save_configs.items()
        }

    @classmethod
    def from_save_config_mode(cls, save_config_mode: SaveConfigMode) -> Self:
        """Return a configuration that applies to all modes."""
        return cls({mode: copy.deepcopy(save_config_mode) for mode in ModeKeys})

    @classmethod
    def from_dict(cls, params: Mapping[Any, Any]) -> Self:
        """Return the configuration for a JSON object; missing modes are None.

        Keys are modes or their names in upper case; values are objects, `SaveConfigMode` or None.

        Raises
        ------
        SMDebugValueError
            If a key or a value is invalid.
        """
        return cls({_mode(key): _mode_config(value) for key, value in params.items()})

    @classmethod
    def parse(cls, obj: object) -> "SaveConfig":
        """Convert a user's configuration: None, one for all modes, or a mapping by mode.

        Raises
        ------
        SMDebugTypeError
            If `obj` is neither None nor a SaveConfig, SaveConfigMode or dictionary.
        """
        if obj is None:
            return cls()
        if isinstance(obj, SaveConfig):
            return obj
        if isinstance(obj, SaveConfigMode):
            return cls.from_save_config_mode(obj)
        if isinstance(obj, Mapping):
            return cls.from_dict(obj)
        raise SMDebugTypeError(
            f"A save configuration must be a SaveConfig or a dictionary by mode, got {obj!r}."
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SaveConfig) and self.mode_save_configs == other.mode_save_configs

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __repr__(self) -> str:
        modes = {mode.name: config for mode, config in self.mode_save_configs.items()}
        return f"SaveConfig({modes})"


def _mode(key: object) -> ModeKeys:
    if isinstance(key, ModeKeys):
        return key
    if isinstance(key, str) and key in ModeKeys.__members__:
        return ModeKeys[key]
    names = ", ".join(ModeKeys.__members__)
    raise SMDebugValueError(f"A mode of a save configuration must be one of {names}, got {key!r}.")


def _mode_config(value: object) -> SaveConfigMode | None:
    if isinstance(value, Mapping):
        return SaveConfigMode.from_dict(value)
    if value is None or isinstance(value, SaveConfigMode):
        return value
    raise SMDebugValueError(f"A save configuration of a mode must be a dictionary, got {value!r}.")
