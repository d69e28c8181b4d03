"""OptimizerCoverage: which parameters with gradients the optimizers of the process hold."""

import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Final

import torch
from torch.utils.weak import WeakIdKeyDictionary

from rule_core.frameworks.pytorch import modules

COMPARED: Final = 1 << 10  # elements of a parameter
TRAINED: Final = "optimizer/trained_parameters"
REPLACED: Final = "optimizer/replaced_parameters"
NOT_HELD: Final = "optimizer/not_held/"  # before the name of a parameter


class OptimizerCoverage:
    """Finds parameters that get gradients although no optimizer holds them.

    Scripts may update such parameters themselves, or copy them from a master copy that an optimizer
    holds. Therefore it compares them with their values at the first update at which no optimizer
    held them.
    """

    def __init__(self) -> None:
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._searched: set[str] = set()  # names of parameters; their optimizers were looked for
        self._members: dict[str, weakref.ref[Any]] = {}  # parameters of the models, by name
        self._replaced = WeakIdKeyDictionary()  # what were members, or is in no module
        self._frozen: set[str] = set()
        self._first: dict[str, tuple[int, Any]] = {}  # by name: the id of a parameter, its elements

    def measure(self, optimizer: Any, parameters: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield names and values of what is known when an optimizer makes an update.

        - `TRAINED`: how many parameters with gradients the optimizers hold;
        - `REPLACED`, if other parameters have gradients: how many parameters without gradients they
          hold that the models have no longer, or that no module has;
        - `NOT_HELD` for each of these others: 0 if it has changed since, otherwise 1, or 2 if it
          was frozen at an earlier update.

        Parameters
        ----------
        parameters
            Those of the models, by name.
        """
        self._optimizers.add(optimizer)
        self._compare_members(parameters)
        trained = {name: item for name, item in parameters.items() if _has_gradient(item)}
        held = self._held()
        not_held = {name: item for name, item in trained.items() if id(item) not in held}
        if not_held.keys() - self._searched:
            self._searched |= not_held.keys()
            held = self._search()
            not_held = {name: item for name, item in trained.items() if id(item) not in held}
        yield TRAINED, sum(map(_has_gradient, held.values()))
        if not_held:
            current = {id(item) for item in parameters.values()}
            replaced = [item for item in self._replaced if id(item) in held.keys() - current]
            yield REPLACED, sum(item.grad is None for item in replaced)
        for name, parameter in not_held.items():
            elements = modules.sample(parameter, COMPARED)
            key, first = self._first.get(name, (None, None))
            if key == id(parameter):
                yield NOT_HELD + name, (elements == first).all() * (1 + (name in self._frozen))
            else:
                self._first[name] = id(parameter), elements.clone()
        self._frozen |= {name for name, item in parameters.items() if not item.requires_grad}

    def _compare_members(self, parameters: Mapping[str, Any]) -> None:
        """Remember the parameters of which others have taken the names."""
        for name, parameter in parameters.items():
            member = self._members.get(name)
            earlier = None if member is None else member()
            if earlier is not parameter:
                self._members[name] = weakref.ref(parameter)
                if earlier is not None:
                    self._replaced[earlier] = True

    def _held(self) -> dict[int, Any]:
        """Return the parameters of the known optimizers, by id."""
        return {
            id(parameter): parameter
            for optimizer in self._optimizers
            for parameter in modules.parameters_of(optimizer)
        }

    def _search(self) -> dict[int, Any]:
        """Look for all optimizers, and for what they hold that no module has."""
        self._optimizers.update(modules.of_type(torch.optim.Optimizer))
        held = self._held()
        owned = {
            id(parameter)
            for module in modules.existing_modules()
            for parameter in vars(module)["_parameters"].values()
        }
        for key, parameter in held.items():
            if key not in owned:
                self._replaced[parameter] = True
        return held


def _has_gradient(parameter: Any) -> bool:
    return bool(parameter.requires_grad) and parameter.grad is not None
