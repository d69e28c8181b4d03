"""JsonText: the base class of configurations that convert to and from JSON text."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import msgspec

from rule_core.exceptions import SMDebugValueError


class JsonText(ABC):
    """A configuration that `to_json_dict` and `from_dict` convert to and from plain data."""

    __slots__ = ()

    @abstractmethod
    def to_json_dict(self) -> dict[str, Any]:
        """Return the JSON object for a collections file."""

    @classmethod
    @abstractmethod
    def from_dict(cls, params: Mapping[Any, Any]) -> Self:
        """Return the configuration for a JSON object."""

    def to_json(self) -> str:
        """Return the JSON text of `to_json_dict`."""
        return msgspec.json.format(msgspec.json.encode(self.to_json_dict()), indent=0).decode()

    @classmethod
    def from_json(cls, json_str: str | bytes) -> Self:
        """Return the configuration for JSON text; see `from_dict`.

        Raises
        ------
        SMDebugValueError
            If the text is not a valid JSON object.
        """
        try:
            params = msgspec.json.decode(json_str)
        except (TypeError, ValueError, RecursionError):
            params = None
        if not isinstance(params, dict):
            raise SMDebugValueError(
                f"The JSON text of a {cls.__name__} must hold an object, got {json_str!r:.200}."
            )
        return cls.from_dict(params)
