"""Callback: what PyTorch calls at a module; copies, pickles and traces of the module lack it."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final

import torch

_WHY: Final = "the hook of smdebug runs outside of compiled code"


class Callback:
    """Calls a function of a hook, wherever the training itself calls the module.

    A copy of the module (such as an average of its weights) and a pickle of it carry a callback
    that does nothing. Code that is exported, traced by `torch.jit` or compiled as one whole graph
    has no room for it: there it does nothing either, instead of breaking the compilation.

    Parameters
    ----------
    call
        Takes what PyTorch hands over, whose number depends on the kind of callback.
    in_graph
        Called once the module is compiled as one whole graph, and `call` is therefore not.
    """

    def __init__(
        self, call: Callable[..., None], in_graph: Callable[[], object] | None = None
    ) -> None:
        self._call = torch.compiler.disable(call, reason=_WHY)
        self._in_graph = in_graph or do_nothing
        torch.compiler.assume_constant_result(_is_one_graph)

    def __call__(self, *args: Any) -> None:
        """Call it, unless the call is only traced."""
        if torch.jit.is_tracing() or torch.compiler.is_exporting():
            return
        if torch.compiler.is_compiling() and _is_one_graph(self._in_graph):
            return
        self._call(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        # A method of the standard library that takes anything and does nothing: a pickled module
        # can be loaded where this package is not installed.
        return getattr, (nullcontext(), "__exit__")


def do_nothing(*_: object) -> None:
    """Take the place of a hook in a copy of what it watches."""


def _is_one_graph(if_so: Callable[[], object]) -> bool:
    """Say whether what is being compiled may have no break; answered while it is compiled."""
    try:
        from torch._dynamo import symbolic_convert  # noqa: PLC0415 - it takes long to import

        whole = bool(symbolic_convert.InstructionTranslator.current_tx().one_graph)
    except (ImportError, AttributeError):  # private in PyTorch
        return False
    if whole:
        if_so()
    return whole
