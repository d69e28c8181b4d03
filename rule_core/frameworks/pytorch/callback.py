"""Callback: a module hook that is absent from copies, pickles and traces of the module."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final

import torch

try:
    from torch._C._dynamo.eval_frame import get_eval_frame_callback as _frame_compiler
except ImportError:  # it is private in PyTorch

    def _frame_compiler() -> Any:
        """Return what compiles the functions that are called, or None; something may."""
        return ...


_WHY: Final = "the hook of smdebug runs outside of compiled code"


class Callback:
    """Calls a function whenever the training calls the module.

    In copies of the module (such as averaged weights) and in pickles the callback does nothing. It
    also does nothing in code that is exported, traced by `torch.jit` or compiled as one whole
    graph, where it would break the compilation.

    Parameters
    ----------
    call
        Called with the arguments of PyTorch, which depend on the kind of callback.
    in_graph
        Called once if the module is compiled as one whole graph, where `call` is not called.
    """

    def __init__(
        self, call: Callable[..., None], in_graph: Callable[[], object] | None = None
    ) -> None:
        self._call = call
        self._call_uncompiled = torch.compiler.disable(call, reason=_WHY)
        self._in_graph = in_graph or do_nothing
        torch.compiler.assume_constant_result(_is_one_graph)

    def __call__(self, *args: Any) -> None:
        """Call the function, unless the call is only traced."""
        if torch.compiler.is_compiling():  # a constant for what compiles this method
            if not torch.compiler.is_exporting() and not _is_one_graph(self._in_graph):
                self._call_uncompiled(*args)
        elif not torch.jit.is_tracing():
            (self._call if _frame_compiler() is None else self._call_uncompiled)(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        # A no-op method of the standard library, so that a pickled module can be loaded without
        # this package.
        return getattr, (nullcontext(), "__exit__")


def do_nothing(*_: object) -> None:
    """Replace a hook in copies of the watched module."""


def _is_one_graph(if_so: Callable[[], object]) -> bool:
    """Return, during compilation, whether the code must compile as one whole graph."""
    try:
        from torch._dynamo import symbolic_convert

        is_whole = bool(symbolic_convert.InstructionTranslator.current_tx().one_graph)
    except (ImportError, AttributeError):  # private in PyTorch
        return False
    if is_whole:
        if_so()
    return is_whole
