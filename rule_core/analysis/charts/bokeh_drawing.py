"""html_page: a chart as a self-contained, interactive page."""

from pathlib import Path
from typing import Any, Final, assert_never

from rule_core.analysis.charts.chart import (
    Bars,
    LineMark,
    Panel,
    PanelChart,
    Rows,
    Spans,
    printable,
)
from rule_core.named_texts import NamedTexts
from rule_core.optional_imports import import_bokeh

FRAME: Final = 60  # pixels above and below the panels
LINE_COLOR: Final = "#2f7fd1"  # visible on white and black
NONE_COLOR: Final = "#8a8f98"
_TIMES: Final = "%Y-%m-%d %H:%M:%S"
_NUMBERS: Final = "0,0.[0000]"
_FEW: Final = 3  # ticks of a narrow axis with large numbers
_TOOLS: Final = "pan,xwheel_zoom,box_zoom,reset,save"
_CALLBACKS: Final = NamedTexts(Path(__file__).with_name("callbacks.js"))


def html_page(chart: PanelChart) -> str:
    """Return a page with the chart and the code that draws it.

    Raises
    ------
    SMDebugRuntimeError
        If bokeh is not installed.
    """
    bk = import_bokeh()
    chart = chart.limit()
    figures = [_figure(bk, chart, panel) for panel in chart.panels]
    texts = [_selection(bk, figures)] if chart.linked and figures else []
    # Spacers keep the panels of an incomplete last row aligned.
    empty = [bk.models.Spacer() for _ in range(-len(figures) % chart.columns)]
    grid = bk.layouts.grid([*figures, *empty], ncols=chart.columns, sizing_mode="stretch_width")
    document = bk.document.Document()
    document.add_root(bk.layouts.column(*texts, grid, sizing_mode="stretch_width"))
    document.js_on_event("document_ready", _ink(bk, figures, texts))
    page: str = bk.embed.file_html(
        document,
        bk.resources.INLINE,
        title=printable(chart.title),
        template=Path(__file__).with_name("page.html.jinja").read_text("utf-8"),
        template_variables={"heading": printable(chart.title), "note": chart.note},
        suppress_callback_warning=True,
    )
    return page


def page_height(chart: PanelChart) -> int:
    """Return the height of the page in pixels."""
    return FRAME + 30 * bool(chart.linked) + sum(chart.limit().row_heights())


def _figure(bk: Any, chart: PanelChart, panel: Panel) -> Any:
    """Draw a panel."""
    figure = bk.plotting.figure(
        height=panel.height,
        tools=f"{_TOOLS},xbox_select" if chart.linked else _TOOLS,
        active_drag="xbox_select" if chart.linked else None,
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        sizing_mode="stretch_width",
        x_axis_type="datetime" if panel.in_time else "auto",
    )
    figure.toolbar.logo = None
    figure.toolbar.autohide = True
    figure.title = bk.models.Title(text=_plain(chart.wrap(panel.title)), text_font_size="13px")
    figure.xaxis.axis_label, figure.yaxis.axis_label = _plain(panel.x_label), _plain(panel.y_label)
    figure.axis.axis_label_text_font_style = "normal"
    figure.xgrid.visible = False
    figure.yaxis.formatter = bk.models.NumeralTickFormatter(format=_NUMBERS)
    if not panel.in_time:
        figure.xaxis.formatter = bk.models.NumeralTickFormatter(format=_NUMBERS)
    for view, limits in ((figure.x_range, panel.x_range), (figure.y_range, panel.y_range)):
        if limits is not None:
            view.start, view.end = limits
    _draw(bk, figure, panel)
    return figure


def _draw(bk: Any, figure: Any, panel: Panel) -> None:
    match panel.mark:
        case LineMark():
            _draw_line(bk, figure, panel, panel.mark)
        case Bars():
            _draw_bars(bk, figure, panel.mark)
        case Spans():
            _draw_spans(bk, figure, panel, panel.mark)
        case Rows():
            _draw_rows(bk, figure, panel, panel.mark)
        case _:
            assert_never(panel.mark)


def _draw_line(bk: Any, figure: Any, panel: Panel, line: LineMark) -> None:
    columns = {"x": line.x, "y": line.y, "index": line.index}
    notes = {f"note{number}": column for number, column in enumerate(line.notes.values())}
    source = bk.models.ColumnDataSource(data=columns | notes, name="line")
    glyph = figure.line("x", "y", source=source, line_color=LINE_COLOR, line_width=1.5)
    if len(line.x) == 1:
        glyph = figure.scatter("x", "y", source=source, color=LINE_COLOR)
    figure.yaxis.ticker.desired_num_ticks = 4
    tips = [("index", "@index"), ("value", "@y{0.[000]}")]
    tips.append(
        ("time", f"@x{{{_TIMES}.%3N}}") if panel.in_time else (panel.x_label, "@x{0.[000]}")
    )
    tips += [(label, f"@note{number}") for number, label in enumerate(line.notes)]
    _add_hover(bk, figure, glyph, tips, mode="vline", times="@x" if panel.in_time else "")


def _draw_bars(bk: Any, figure: Any, bars: Bars) -> None:
    columns = {"left": bars.edges[:-1], "right": bars.edges[1:], "top": bars.counts}
    source = bk.models.ColumnDataSource(data=columns)
    glyph = figure.quad(
        "left", "right", "top", 0, source=source, fill_color=LINE_COLOR, line_color=None
    )
    figure.y_range.start = 0
    figure.xaxis.ticker.desired_num_ticks = _FEW
    _add_hover(bk, figure, glyph, [("from", "@left"), ("to", "@right"), ("count", "@top")])


def _draw_spans(bk: Any, figure: Any, panel: Panel, spans: Spans) -> None:
    source = bk.models.ColumnDataSource(
        data={
            "left": spans.start,
            "right": spans.end,
            "bottom": spans.row + 0.1,
            "top": spans.row + 0.9,
            "name": spans.names,
            "ms": spans.end - spans.start,
        }
    )
    glyph = figure.quad(
        "left",
        "right",
        "top",
        "bottom",
        source=source,
        fill_color=LINE_COLOR,
        line_color=LINE_COLOR,
        fill_alpha=0.55,
    )
    _name_rows(bk, figure, panel, spans.rows)
    tips = [("what", "@name"), ("start", f"@left{{{_TIMES}.%3N}}"), ("duration", "@ms{0.[000]} ms")]
    _add_hover(bk, figure, glyph, tips, times="@left")


def _draw_rows(bk: Any, figure: Any, panel: Panel, rows: Rows) -> None:
    """Draw each row as an image, so that its tooltip contains its name."""
    count = len(rows.rows)
    colors = bk.models.LinearColorMapper(
        palette=bk.palettes.Viridis256, low=0, high=100, nan_color=NONE_COLOR
    )
    source = bk.models.ColumnDataSource(
        data={
            "image": [row.reshape(1, -1) for row in rows.values],
            "x": [rows.start] * count,
            "y": list(range(count)),
            "dw": [rows.end - rows.start] * count,
            "dh": [1] * count,
            "name": [printable(name) for name in rows.rows],
        }
    )
    glyph = figure.image("image", "x", "y", "dw", "dh", source=source, color_mapper=colors)
    _name_rows(bk, figure, panel, rows.rows)
    bar = bk.models.ColorBar(color_mapper=colors, title="%", width=10, background_fill_color=None)
    figure.add_layout(bar, "right")
    tips = [("what", "@name"), ("usage", "@image{0.[0]} %"), ("time", f"$x{{{_TIMES}}}")]
    _add_hover(bk, figure, glyph, tips, times="$x")


def _name_rows(bk: Any, figure: Any, panel: Panel, rows: list[str]) -> None:
    figure.y_range.start, figure.y_range.end = 0, max(len(rows), 1)
    labels = {row + 0.5: _plain(name) for row, name in panel.row_labels(rows).items()}
    figure.yaxis.ticker = bk.models.FixedTicker(ticks=list(labels))
    figure.yaxis.major_label_overrides = labels
    figure.ygrid.visible = False


def _add_hover(
    bk: Any,
    figure: Any,
    glyph: Any,
    tips: list[tuple[str, str]],
    *,
    mode: str = "mouse",
    times: str = "",
) -> None:
    hover = bk.models.HoverTool(renderers=[glyph], tooltips=tips, mode=mode)
    if times:
        hover.formatters = {times: "datetime"}
    figure.add_tools(hover)


def _selection(bk: Any, figures: list[Any]) -> Any:
    """Link the figures, and return the text with the indexes of the selection."""
    text = bk.models.Div(text="Drag over a chart to select a range; its indexes appear here.")
    for figure in figures:
        figure.x_range = figures[0].x_range
        source = figure.select_one({"name": "line"})
        code = bk.models.CustomJS(
            args={"source": source, "says": text}, code=_CALLBACKS["selected"]
        )
        figure.js_on_event("selectiongeometry", code)
    return text


def _ink(bk: Any, figures: list[Any], texts: list[Any]) -> Any:
    """Return a callback that gives axes and titles the colours of the page."""
    arguments = {
        "axes": [axis for figure in figures for axis in figure.axis],
        "grids": [grid for figure in figures for grid in figure.ygrid],
        "titles": [figure.title for figure in figures],
        "bars": [bar for figure in figures for bar in figure.right],
        "says": texts,
    }
    return bk.models.CustomJS(args=arguments, code=_CALLBACKS["ink"])


def _plain(text: str) -> str:
    """Return a label that is not parsed as a formula."""
    text = "\n".join(map(printable, text.split("\n")))
    for begin in ("$$", r"\(", r"\["):
        text = text.replace(begin, f"{begin[0]}\u2060{begin[1]}")
    return text
