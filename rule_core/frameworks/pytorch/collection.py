"""Collection: a collection that modules of PyTorch can be added to."""

import re
from collections.abc import Iterable
from typing import Any

from rule_core.exceptions import SMDebugTypeError
from rule_core.frameworks.pytorch.modules import Named
from rule_core.model.collection import Collection as CoreCollection


class Collection(CoreCollection):
    """A named set of tensors that modules can be added to; see `smdebug.core.collection`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.modules: list[tuple[Any, bool, bool]] = []

    def add_module_tensors(self, module: Any, inputs: bool = False, outputs: bool = True) -> None:
        """Add the inputs or the outputs of a module of the registered model, or both.

        Parameters
        ----------
        module
            A module of a model that is registered before the first step.
        inputs, outputs
            Whether to add its inputs and its outputs.
        """
        self.modules.append((module, inputs, outputs))

    def include_modules(self, named_modules: Iterable[Named]) -> None:
        """Add patterns for the names of the added modules, before the first step.

        Raises
        ------
        SMDebugTypeError
            If a module is not in `named_modules`.
        """
        names = {id(item.module): item.name for item in named_modules}
        for module, *sides in self.modules:
            if id(module) not in names:
                raise SMDebugTypeError(
                    f"Collection {self.name!r} names a module that no registered model contains, "
                    f"got {module!r}."
                )
            for side, is_included in zip(("input", "output"), sides, strict=True):
                if is_included:
                    self.include(f"^{re.escape(names[id(module)])}_{side}_")
