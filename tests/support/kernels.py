"""using: which kernel measures, the compiled one of a kind of processor or numpy."""

from collections.abc import Iterator
from contextlib import contextmanager

from rule_core.kernels.sweep import _Loaded


@contextmanager
def using(processor: str | None) -> Iterator[None]:
    """Use the instructions of a kind of processor, or numpy if None."""
    before = _Loaded.kernel
    if processor is None:
        _Loaded.kernel = None
    elif before is not None:
        before.use(processor)
    try:
        yield
    finally:
        _Loaded.kernel = before
        if before is not None:
            before.use(before.processors()[-1])
