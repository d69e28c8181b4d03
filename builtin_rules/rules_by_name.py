"""RulesByName: a table of rules, each of which is imported when it is first asked for."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar

from smdebug.rules import Rule

AnyRule_co = TypeVar("AnyRule_co", bound=Rule, covariant=True)


class RulesByName(Mapping[str, type[AnyRule_co]], Generic[AnyRule_co]):
    """Rules by name.

    Names and their number cost no import.

    Parameters
    ----------
    modules
        The module of each rule in this package, by the name of its class.
    """

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = dict(modules)

    def __getitem__(self, name: str) -> type[AnyRule_co]:
        module = import_module(f"{__package__}.{self._modules[name]}")
        rule_class: type[AnyRule_co] = getattr(module, name)
        return rule_class

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

    def __or__(self, other: "RulesByName[AnyRule_co]") -> "RulesByName[AnyRule_co]":
        """Return the rules of both tables, those of this one first."""
        return RulesByName(self._modules | other._modules)

    def attribute(self, module: str, name: str) -> type[AnyRule_co]:
        """Return a rule as an attribute of a module, for its ``__getattr__``.

        Raises
        ------
        AttributeError
            If there is no such rule.
        """
        if name in self:
            return self[name]
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
