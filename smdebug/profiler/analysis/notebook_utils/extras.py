"""import_bokeh, import_matplotlib: what draws charts, which only those who look at them need."""

from typing import Any

from smdebug.exceptions import SMDebugRuntimeError


def import_bokeh() -> Any:
    """Return bokeh, with the modules that draw charts in pages.

    Raises
    ------
    SMDebugRuntimeError
        If it is not installed.
    """
    try:
        import bokeh.document  # noqa: PLC0415 - an extra, and slow to import
        import bokeh.embed  # noqa: PLC0415 - likewise
        import bokeh.layouts  # noqa: PLC0415 - likewise
        import bokeh.models  # noqa: PLC0415 - likewise
        import bokeh.palettes  # noqa: PLC0415 - likewise
        import bokeh.plotting  # noqa: PLC0415 - likewise
        import bokeh.resources  # noqa: PLC0415 - likewise
    except ImportError as err:
        msg = "Charts as pages need bokeh. Install it with pip install 'rule-runner[profiler]'."
        raise SMDebugRuntimeError(msg) from err
    return bokeh


def import_matplotlib() -> Any:
    """Return matplotlib, with the modules that draw pictures.

    Raises
    ------
    SMDebugRuntimeError
        If it is not installed.
    """
    try:
        import matplotlib.colors  # noqa: PLC0415 - an extra, and slow to import
        import matplotlib.dates  # noqa: PLC0415 - likewise
        import matplotlib.figure  # noqa: PLC0415 - likewise
        import matplotlib.ticker  # noqa: PLC0415 - likewise
    except ImportError as err:
        msg = (
            "Charts as pictures need matplotlib. "
            "Install it with pip install 'rule-runner[profiler]'."
        )
        raise SMDebugRuntimeError(msg) from err
    return matplotlib
