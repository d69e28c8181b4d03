"""Drawn: objects with a chart that is shown in a notebook or saved to a file."""

import os
import sys
from abc import ABC, abstractmethod
from html import escape
from pathlib import Path
from typing import Any

from rule_core.analysis.charts.bokeh_drawing import html_page, page_height
from rule_core.analysis.charts.chart import PanelChart
from rule_core.analysis.charts.matplotlib_drawing import write_png
from rule_core.exceptions import SMDebugValueError


class Drawn(ABC):
    """Base class of objects with a chart.

    In a notebook the chart is displayed when the object is created, and whenever a cell ends with
    it; the last display is updated with the data. Elsewhere, use `save`.
    """

    _target: Any = None  # the notebook's handle of the last display
    _cell: int | None = None  # number of the cell with the last display

    @abstractmethod
    def chart(self) -> PanelChart:
        """Return the current chart."""

    def show(self) -> None:
        """Display the chart in a notebook; do nothing elsewhere.

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
        """Save the chart as a page (``.html``) or an image (``.png``), and return the path.

        The page is interactive and self-contained. Missing folders are created.

        Raises
        ------
        SMDebugValueError
            If the name has another ending.
        SMDebugRuntimeError
            If bokeh, or matplotlib for images, is not installed.
        OSError
            If the file cannot be written.
        """
        target = Path(path)
        if target.suffix.lower() not in {".html", ".png"}:
            raise SMDebugValueError(f"A chart is saved as .html or .png, got {str(target)!r}.")
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix.lower() == ".png":
            write_png(self.chart(), target)
        else:
            target.write_text(html_page(self.chart()), encoding="utf-8")
        return target

    def _renew(self) -> None:
        """Update the last display with the current data."""
        if self._target is not None:
            self._target.update(self._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        return {"text/html": self._frame(), "text/plain": repr(self)}

    def _frame(self) -> str:
        """Return the page in a frame, isolated from the notebook's styles."""
        chart = self.chart()
        return (
            f'<iframe srcdoc="{escape(html_page(chart))}" title="{escape(chart.title)}" '
            f'sandbox="allow-scripts allow-downloads" width="100%" height="{page_height(chart)}" '
            'style="border:0;max-width:1100px"></iframe>'
        )

    def _repr_html_(self) -> str | None:
        """Return the HTML for a cell that ends with this; None if the cell displays it already."""
        shell = _notebook()
        is_displayed = shell is not None and self._cell == shell.execution_count
        return None if is_displayed else self._frame()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def _notebook() -> Any:
    """Return the shell of the running notebook, or None."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None
