"""Collection: as everywhere, and with PyTorch's modules."""

from typing import Any

from smdebug.core.collection import Collection as CoreCollection


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
