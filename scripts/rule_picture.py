"""Charts as standalone SVG files, for the pages of rules, which link to them."""

from xml.etree.ElementTree import Element, SubElement, tostring

from rule_runner.report.html.page import template_text
from rule_runner.report.html.series import Drawing
from rule_runner.report.html.svg_chart import COLOURED, SvgChart

WIDTH = 760
HEIGHT = 240  # of the plot
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 34
ROW = 20  # of the legend
NAME = 90  # characters of a legend

_OWN = """
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.paper{fill:var(--paper)}
.head{fill:var(--ink);font-size:14px;font-weight:600}
.name{fill:var(--ink);font-size:13px}
"""


def picture(drawing: Drawing) -> str:
    """Return a chart with its legend as the text of an SVG file."""
    chart = SvgChart(drawing)
    rows = min(len(drawing.lines), COLOURED) + 1
    height = TOP + HEIGHT + BOTTOM + ROW * rows + 8
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img"})
    root.attrib.update({"width": str(WIDTH), "height": str(height)})
    root.attrib.update({"viewBox": f"0 0 {WIDTH} {height}", "aria-labelledby": "title desc"})
    SubElement(root, "title", {"id": "title"}).text = chart.title()
    SubElement(root, "desc", {"id": "desc"}).text = chart.description()
    SubElement(root, "style").text = template_text("colours.css", "charts.css") + _OWN
    SubElement(root, "rect", {"class": "paper", "width": "100%", "height": "100%", "rx": "8"})
    _text(root, "head", 16, 24, drawing.quantity.label)
    plot = SubElement(root, "svg", {"x": str(LEFT), "y": str(TOP), "overflow": "visible"})
    plot.attrib.update({"width": str(WIDTH - LEFT - RIGHT), "height": str(HEIGHT)})
    chart.draw(plot)
    _legend(root, drawing)
    return tostring(root, encoding="unicode") + "\n"


def _legend(root: Element, drawing: Drawing) -> None:
    top = TOP + HEIGHT + BOTTOM + ROW
    for index, line in enumerate(drawing.lines[:COLOURED]):
        group = SubElement(root, "g", {"class": f"c{index}"})
        y = top + ROW * index
        SubElement(group, "path", {"class": "trace", "d": f"M{LEFT} {y - 4}h24"})
        name = line.name if len(line.name) <= NAME else f"{line.name[: NAME - 1]}…"
        _text(group, "name", LEFT + 32, y, name)
    y = top + ROW * min(len(drawing.lines), COLOURED)
    SubElement(root, "path", {"class": "met", "d": f"M{LEFT + 12} {y - 4}h0"})
    more = len(drawing.lines) - COLOURED
    pale = f"; pale: {more} more" if more > 0 else ""
    _text(root, "name", LEFT + 32, y, f"the condition is met{pale}")
    _text(root, "tick", WIDTH - RIGHT - 28, TOP + HEIGHT + BOTTOM, "step")


def _text(parent: Element, kind: str, x: int, y: int, text: str) -> None:
    SubElement(parent, "text", {"class": kind, "x": str(x), "y": str(y)}).text = text
