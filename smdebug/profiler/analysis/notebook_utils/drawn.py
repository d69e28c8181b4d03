"""Drawn: what has a chart: it is shown in a notebook, and saved as a page or a picture."""

import os
import sys
from abc import ABC, abstractmethod
from html import escape
from pathlib import Path
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.profiler.analysis.notebook_utils.bokeh_drawing import html_page, page_height
from smdebug.profiler.analysis.notebook_utils.chart import Chart
from smdebug.profiler.analysis.notebook_utils.matplotlib_drawing import write_png


class Drawn(ABC):
    """What has a chart.

    In a notebook it shows itself when it is made, and each time a cell ends with it; when its data
    change, the last showing changes with them. Elsewhere it shows nothing: save it.
    """

    _target: Any = None  # the notebook's handle of the last showing
    _cell: int | None = None  # in which cell it was shown last

    @abstractmethod
    def chart(self) -> Chart:
        """Return what is shown now."""

    def show(self) -> None:
        """Show the chart, if this is a notebook.

        Raises
        ------
        SMDebugRuntimeError
            If bokeh is not installed.
        """
        shell = _notebook()
        if shell is not None:
            display = sys.modules["IPython"].display.display
            self._target = display(self._bundle(), raw=True, display_id=True)
            self._cell = shell.execution_count

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the chart as a page (``.html``) or as a picture (``.png``); return where.

        A page holds all that it needs, and can be zoomed and pointed at. The folder is made if it
        is not there.

        Raises
        ------
        SMDebugValueError
            If the name ends otherwise.
        SMDebugRuntimeError
            If bokeh, of pictures matplotlib, is not installed.
        OSError
            If the file cannot be written.
        """
        place = Path(path)
        if place.suffix.lower() not in {".html", ".png"}:
            msg = f"A chart is saved as .html or .png, got {str(place)!r}."
            raise SMDebugValueError(msg)
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.suffix.lower() == ".png":
            write_png(self.chart(), place)
        else:
            place.write_text(html_page(self.chart()), encoding="utf-8")
        return place

    def _renew(self) -> None:
        """Put the data of now where the chart was shown last."""
        if self._target is not None:
            self._target.update(self._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        return {"text/html": self._frame(), "text/plain": repr(self)}

    def _frame(self) -> str:
        """Return the page in a frame of its own, which the notebook's styles do not reach."""
        chart = self.chart()
        return (
            f'<iframe srcdoc="{escape(html_page(chart))}" title="{escape(chart.title)}" '
            f'sandbox="allow-scripts allow-downloads" width="100%" height="{page_height(chart)}" '
            'style="border:0;max-width:1100px"></iframe>'
        )

    def _repr_html_(self) -> str | None:
        """Return what a notebook shows for a cell that ends with this; None if it does already."""
        shell = _notebook()
        shown = shell is not None and self._cell == shell.execution_count
        return None if shown else self._frame()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def _notebook() -> Any:
    """Return the shell of the notebook that runs this, or None."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None
