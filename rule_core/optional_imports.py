"""Optional imports for profiler analysis: pandas, bokeh and matplotlib.

If a package is missing, they raise `SMDebugRuntimeError` with installation instructions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rule_core.exceptions import SMDebugRuntimeError

if TYPE_CHECKING:
    from typing import TypeAlias

    import pandas as pd

    DataFrame: TypeAlias = pd.DataFrame


@contextmanager
def _required(package: str, purpose: str) -> Iterator[None]:
    """Explain which feature needs a package that cannot be imported."""
    try:
        yield
    except ImportError as err:
        raise SMDebugRuntimeError(
            f"{purpose} need {package}, which the variant 'full' of the image has. "
            "Install it with pip install 'rule-runner[profiler]'."
        ) from err


def import_pandas() -> Any:
    """Return pandas."""
    with _required("pandas", "Frames"):
        import pandas as pd
    return pd


def data_frame(*args: Any, **options: Any) -> "DataFrame":
    """Return a pandas frame from the arguments of its constructor."""
    frame: DataFrame = import_pandas().DataFrame(*args, **options)
    return frame


def import_bokeh() -> Any:
    """Return bokeh, with the modules for HTML charts."""
    with _required("bokeh", "Charts as pages"):
        import bokeh.document
        import bokeh.embed
        import bokeh.layouts
        import bokeh.models
        import bokeh.palettes
        import bokeh.plotting
        import bokeh.resources
    return bokeh


def import_matplotlib() -> Any:
    """Return matplotlib, with the modules for images."""
    with _required("matplotlib", "Charts as pictures"):
        import matplotlib.colors
        import matplotlib.dates
        import matplotlib.figure
        import matplotlib.ticker
    return matplotlib
