"""write_png: a chart as a PNG image."""

import warnings
from pathlib import Path
from typing import Any, Final, assert_never

import numpy as np

from rule_core.analysis.charts.bokeh_drawing import LINE_COLOR, NONE_COLOR
from rule_core.analysis.charts.chart import (
    Bars,
    LineMark,
    Panel,
    PanelChart,
    Rows,
    Spans,
    printable,
)
from rule_core.optional_imports import import_matplotlib

WIDTH: Final = 1000  # pixels
_DPI: Final = 100
_INK: Final = "#1b1f24"
_PALE: Final = "#dfe3e8"
_NUMBERS: Final = "{x:,.10g}"
_HEAD: Final = 45  # pixels: title and note
_MS_OF_DAY: Final = 86_400_000


def write_png(chart: PanelChart, path: Path) -> None:
    """Write a chart to a PNG file.

    Raises
    ------
    SMDebugRuntimeError
        If matplotlib is not installed.
    OSError
        If the file cannot be written.
    """
    mpl = import_matplotlib()
    chart = chart.limit()
    heights = chart.row_heights()
    size = (WIDTH / _DPI, (_HEAD + sum(heights)) / _DPI)
    figure = mpl.figure.Figure(figsize=size, dpi=_DPI, layout="constrained", facecolor="white")
    text = "\n".join(filter(None, (printable(chart.title), chart.note)))
    figure.suptitle(text, fontsize=11, color=_INK, parse_math=False)
    if heights:
        grid = figure.subplots(
            len(heights), chart.columns, squeeze=False, gridspec_kw={"height_ratios": heights}
        )
        for axes, panel in zip(grid.flat, chart.panels, strict=False):
            _draw(mpl, axes, chart, panel)
        for axes in grid.flat[len(chart.panels) :]:
            axes.set_axis_off()
    with warnings.catch_warnings():
        # The font may lack a name's characters, or the name may not fit: the image is still useful.
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(path, format="png")


def _draw(mpl: Any, axes: Any, chart: PanelChart, panel: Panel) -> None:
    """Draw a panel."""
    plain = {"parse_math": False, "color": _INK, "fontsize": 9}
    axes.set_title(chart.wrap(printable(panel.title)), loc="left", **(plain | {"fontsize": 10}))
    axes.set_xlabel(printable(panel.x_label), **plain)
    axes.set_ylabel(printable(panel.y_label), **plain)
    axes.tick_params(labelsize=8, labelcolor=_INK, color=_PALE)
    axes.spines[:].set_visible(False)
    axes.grid(visible=True, axis="y", color=_PALE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.yaxis.set_major_formatter(mpl.ticker.StrMethodFormatter(_NUMBERS))
    axes.xaxis.set_major_formatter(mpl.ticker.StrMethodFormatter(_NUMBERS))
    _draw_mark(mpl, axes, panel)
    unit = _unit(panel)
    if panel.in_time:
        locator = mpl.dates.AutoDateLocator()
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(mpl.dates.ConciseDateFormatter(locator))
        axes.xaxis.get_offset_text().set_size(8)
    if panel.x_range is not None and panel.x_range[0] < panel.x_range[1]:
        axes.set_xlim(panel.x_range[0] / unit, panel.x_range[1] / unit)
    if panel.y_range is not None:
        axes.set_ylim(*panel.y_range)


def _draw_mark(mpl: Any, axes: Any, panel: Panel) -> None:
    unit = _unit(panel)
    match panel.mark:
        case LineMark():
            marker = "o" if len(panel.mark.x) == 1 else None
            axes.plot(panel.mark.x / unit, panel.mark.y, color=LINE_COLOR, lw=1.2, marker=marker)
        case Bars():
            axes.stairs(panel.mark.counts, panel.mark.edges, fill=True, color=LINE_COLOR)
            axes.yaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True, nbins=5))
            axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(nbins=3, steps=[1, 2, 5, 10]))
        case Spans():
            _draw_spans(axes, panel, panel.mark)
        case Rows():
            _draw_rows(mpl, axes, panel, panel.mark)
        case _:
            assert_never(panel.mark)


def _draw_spans(axes: Any, panel: Panel, spans: Spans) -> None:
    unit = _unit(panel)
    axes.barh(
        spans.row + 0.5,
        (spans.end - spans.start) / unit,
        left=spans.start / unit,
        height=0.8,
        color=LINE_COLOR,
        alpha=0.55,
        edgecolor=LINE_COLOR,
    )
    _name_rows(axes, panel, spans.rows)


def _draw_rows(mpl: Any, axes: Any, panel: Panel, rows: Rows) -> None:
    unit = _unit(panel)
    colors = mpl.colormaps["viridis"].with_extremes(bad=NONE_COLOR)
    image = axes.imshow(
        np.ma.masked_invalid(rows.values),
        extent=(rows.start / unit, rows.end / unit, 0, len(rows.rows)),
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        cmap=colors,
        vmin=0,
        vmax=100,
    )
    bar = axes.figure.colorbar(image, ax=axes, pad=0.01, fraction=0.02)
    bar.ax.tick_params(labelsize=8, labelcolor=_INK, color=_PALE)
    bar.outline.set_visible(False)
    bar.ax.set_title("%", fontsize=8, color=_INK)
    _name_rows(axes, panel, rows.rows)


def _name_rows(axes: Any, panel: Panel, rows: list[str]) -> None:
    labels = panel.row_labels(rows)
    axes.set_yticks([row + 0.5 for row in labels], list(labels.values()), parse_math=False)
    axes.set_ylim(0, max(len(rows), 1))
    axes.grid(visible=False)


def _unit(panel: Panel) -> float:
    """Return the divisor of `x`: matplotlib counts days."""
    return _MS_OF_DAY if panel.in_time else 1
