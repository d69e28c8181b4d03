"""Collection: as everywhere, and with PyTorch's modules."""

import re
from collections.abc import Iterable
from typing import Any

from smdebug.core.collection import Collection as CoreCollection
from smdebug.exceptions import SMDebugTypeError
from smdebug.pytorch.modules import Named


class Collection(CoreCollection):
    """A named set of tensors that modules can be added to; see `smdebug.core.collection`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.modules: list[tuple[Any, bool, bool]] = []

    def add_module_tensors(self, module: Any, inputs: bool = False, outputs: bool = True) -> None:
        """Add what goes into a module of the registered model, what comes out of it, or both.

        Parameters
        ----------
        module
            A module inside a model that is registered before the first step.
        inputs, outputs
            Which of its tensors.
        """
        self.modules.append((module, inputs, outputs))

    def include_modules(self, known: Iterable[Named]) -> None:
        """Have the added modules told by their names; done before the first step.

        Raises
        ------
        SMDebugTypeError
            If one of them has none.
        """
        names = {id(one.module): one.name for one in known}
        for module, *sides in self.modules:
            if id(module) not in names:
                msg = (
                    f"Collection {self.name!r} names a module that is in no registered model, "
                    f"got {module!r}."
                )
                raise SMDebugTypeError(msg)
            for side, wanted in zip(("input", "output"), sides, strict=True):
                if wanted:
                    self.include(f"^{re.escape(names[id(module)])}_{side}_")
