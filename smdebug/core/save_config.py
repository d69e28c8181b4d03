"""SaveConfig: at which steps of which mode a hook saves."""

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self, cast

from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

DEFAULT_INTERVAL: Final = 500


def whole(key: str, value: object) -> int:
    """Return the integer that `value`, a number or text, stands for; `key` is for the error.

    Raises
    ------
    SMDebugValueError
        If it stands for none.

    >>> whole("start_step", " 7"), whole("start_step", 7.0)
    (7, 7)
    """
    try:
        if not isinstance(value, str):
            value = operator.index(value) if hasattr(value, "__index__") else _integral(value)
        return int(value)
    except (TypeError, ValueError):
        msg = f"{key} must be an integer, got {value!r}."
        raise SMDebugValueError(msg) from None


def _integral(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise TypeError(value)


def interval(key: str, value: object) -> int:
    """Return the integer other than 0 that `value` stands for."""
    number = whole(key, value)
    if number == 0:
        msg = f"{key} must be an integer other than 0, got {value!r}."
        raise SMDebugValueError(msg)
    return number


def listed_steps(key: str, value: object) -> tuple[int, ...]:
    """Return a list of integers as a tuple, in its order."""
    try:
        return tuple(int(operator.index(one)) for one in cast("Iterable[Any]", value))
    except TypeError:
        msg = f"{key} must be a list of integers, got {value!r}."
        raise SMDebugValueError(msg) from None


@dataclass(frozen=True, slots=True, init=False)
class SaveConfigMode:
    """The steps to save of one mode: those listed, and every so many from a start to an end.

    Parameters
    ----------
    save_interval
        Steps that it divides are saved; counted from step 0, wherever the start is. Text of a
        number will do, here and below; None is the default.
    start_step, end_step
        The interval holds for ``start_step <= step < end_step``; no `end_step`: for ever.
    save_steps
        Steps that are saved besides, before the start and after the end too.

    Raises
    ------
    SMDebugValueError
        If one of them is no integer, or the interval is 0.

    Examples
    --------
    >>> config = SaveConfigMode(save_interval=3, start_step=2, end_step=7, save_steps=[10])
    >>> [step for step in range(20) if config.should_save_step(step)]
    [3, 6, 10]
    """

    save_interval: int
    start_step: int
    end_step: int | None
    save_steps: tuple[int, ...]
    _listed: frozenset[int] = field(compare=False, repr=False)

    def __init__(
        self,
        save_interval: int | str | None = None,
        start_step: int | str | None = None,
        end_step: int | str | None = None,
        save_steps: Iterable[int] | None = None,
    ) -> None:
        steps = listed_steps("save_steps", () if save_steps is None else save_steps)
        every = DEFAULT_INTERVAL if save_interval is None else save_interval
        values: dict[str, Any] = {
            "save_interval": interval("save_interval", every),
            "start_step": whole("start_step", 0 if start_step is None else start_step),
            "end_step": None if end_step is None else whole("end_step", end_step),
            "save_steps": steps,
            "_listed": frozenset(steps),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def should_save_step(self, step: int) -> bool:
        """Say whether a step, counted within the mode, is saved."""
        if step in self._listed:
            return True
        if step < self.start_step or step % self.save_interval:
            return False
        return self.end_step is None or step < self.end_step

    def to_json_dict(self) -> dict[str, Any]:
        """Return the object that stands in a collections file."""
        return {
            "save_interval": self.save_interval,
            "save_steps": list(self.save_steps),
            "start_step": self.start_step,
            "end_step": self.end_step,
        }

    @classmethod
    def from_dict(cls, params: Mapping[str, Any]) -> Self:
        """Return the configuration that `to_json_dict` gave; what is missing is the default."""
        keys = ("save_interval", "start_step", "end_step", "save_steps")
        return cls(**{key: params[key] for key in keys if key in params})


class SaveConfig:
    """The steps to save of every mode.

    Parameters
    ----------
    mode_save_configs
        By mode; the mapping is copied, and modes that it leaves out get None, to be filled by
        `merge_default_save_config`.
    save_interval, start_step, end_step, save_steps
        Without a mapping: of all modes, as for `SaveConfigMode`.

    Raises
    ------
    SMDebugValueError
        If a key of the mapping is no mode, or a value is neither None nor a `SaveConfigMode`.

    Examples
    --------
    >>> config = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(save_interval=2)})
    >>> config.should_save_step(ModeKeys.TRAIN, 4)
    True
    >>> config.get_save_config(ModeKeys.EVAL) is None
    True
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
            mode = SaveConfigMode(save_interval, start_step, end_step, save_steps)
            self.mode_save_configs = dict.fromkeys(ModeKeys, mode)
            return
        self.mode_save_configs = dict.fromkeys(ModeKeys)
        for key, config in mode_save_configs.items():
            if config is None and isinstance(key, ModeKeys):
                continue
            self.set_save_config(key, config)

    def should_save_step(self, mode: ModeKeys, step: int) -> bool:
        """Say whether step `step` of `mode` is saved.

        Raises
        ------
        SMDebugValueError
            If nothing is configured for the mode.
        """
        config = self.mode_save_configs[mode]
        if config is None:
            msg = (
                f"The save configuration says nothing of mode {mode.name}, got {self!r}. "
                "Merge it with a default."
            )
            raise SMDebugValueError(msg)
        return config.should_save_step(step)

    def get_save_config(self, mode: ModeKeys) -> SaveConfigMode | None:
        """Return what is configured for a mode, None if nothing is."""
        return self.mode_save_configs[mode]

    def set_save_config(self, mode: ModeKeys, save_config_mode: SaveConfigMode | None) -> None:
        """Configure one mode.

        Raises
        ------
        SMDebugValueError
            If `mode` is no mode, or `save_config_mode` no `SaveConfigMode`.
        """
        # Training scripts are seldom type-checked.
        given: tuple[object, object] = (mode, save_config_mode)
        if not isinstance(given[0], ModeKeys) or not isinstance(given[1], SaveConfigMode):
            msg = (
                f"A save configuration maps ModeKeys to SaveConfigMode, got {mode!r}: {given[1]!r}."
            )
            raise SMDebugValueError(msg)
        self.mode_save_configs[mode] = save_config_mode

    def merge_default_save_config(self, default_save_config: "SaveConfig") -> None:
        """Fill the modes for which nothing is configured."""
        for mode, config in default_save_config.mode_save_configs.items():
            if self.mode_save_configs[mode] is None:
                self.mode_save_configs[mode] = config

    def to_json_dict(self) -> dict[str, Any]:
        """Return the object that stands in a collections file, with all modes as keys."""
        return {
            mode.name: None if config is None else config.to_json_dict()
            for mode, config in self.mode_save_configs.items()
        }

    @classmethod
    def from_dict(cls, params: Mapping[Any, Any]) -> Self:
        """Return the configuration that `to_json_dict` gave; modes left out are None.

        Keys are modes or their names in upper case; values are objects, `SaveConfigMode` or None.

        Raises
        ------
        SMDebugValueError
            If a key or a value is anything else.
        """
        return cls({_mode(key): _mode_config(value) for key, value in params.items()})

    @classmethod
    def parse(cls, obj: object) -> "SaveConfig":
        """Return the configuration that a user gave: None, for all modes one, or by mode.

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
            return cls(dict.fromkeys(ModeKeys, obj))
        if isinstance(obj, Mapping):
            return cls.from_dict(obj)
        msg = f"A save configuration must be a SaveConfig or a dictionary by mode, got {obj!r}."
        raise SMDebugTypeError(msg)

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
    msg = f"A mode of a save configuration must be one of {names}, got {key!r}."
    raise SMDebugValueError(msg)


def _mode_config(value: object) -> SaveConfigMode | None:
    if isinstance(value, Mapping):
        return SaveConfigMode.from_dict(value)
    if value is None or isinstance(value, SaveConfigMode):
        return value
    msg = f"What a save configuration holds for a mode must be a dictionary, got {value!r}."
    raise SMDebugValueError(msg)
