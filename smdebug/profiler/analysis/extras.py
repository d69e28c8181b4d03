"""import_pandas, import_bokeh, import_matplotlib: what only the analysis of profiler data needs.

Each raises `SMDebugRuntimeError`, which says how to install it, where it is missing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from smdebug.exceptions import SMDebugRuntimeError


@contextmanager
def _needed(package: str, what: str) -> Iterator[None]:
    """Say what needs a package that cannot be imported."""
    try:
        yield
    except ImportError as err:
        msg = f"{what} need {package}. Install it with pip install 'rule-runner[profiler]'."
        raise SMDebugRuntimeError(msg) from err


def import_pandas() -> Any:
    """Return pandas."""
    with _needed("pandas", "Frames"):
        import pandas as pd  # noqa: PLC0415 - an extra, and slow to import
    return pd


def import_bokeh() -> Any:
    """Return bokeh, with the modules that draw charts in pages."""
    with _needed("bokeh", "Charts as pages"):
        import bokeh.document  # noqa: PLC0415 - an extra, and slow to import
        import bokeh.embed  # noqa: PLC0415 - likewise
        import bokeh.layouts  # noqa: PLC0415 - likewise
        import bokeh.models  # noqa: PLC0415 - likewise
        import bokeh.palettes  # noqa: PLC0415 - likewise
        import bokeh.plotting  # noqa: PLC0415 - likewise
        import bokeh.resources  # noqa: PLC0415 - likewise
    return bokeh


def import_matplotlib() -> Any:
    """Return matplotlib, with the modules that draw pictures."""
    with _needed("matplotlib", "Charts as pictures"):
        import matplotlib.colors  # noqa: PLC0415 - an extra, and slow to import
        import matplotlib.dates  # noqa: PLC0415 - likewise
        import matplotlib.figure  # noqa: PLC0415 - likewise
        import matplotlib.ticker  # noqa: PLC0415 - likewise
    return matplotlib
