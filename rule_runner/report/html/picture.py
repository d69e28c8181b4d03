"""Charts as standalone SVG files, for pages that link to them."""

from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from rule_runner.report.html.series import Drawing
from rule_runner.report.html.svg_chart import COLOURED, SvgChart

WIDTH: Final = 760
HEIGHT: Final = 240  # of the plot
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 34
ROW: Final = 20  # of the legend
NAME: Final = 90  # characters of a legend

# The colours of the report, in a light and a dark scheme.
COLOURS: Final = """
:root{--paper:#fff;--ink:#1b2027;--muted:#5a6472;--grid:#e4e7ec;--limit:#c2410c;--bad:#fdeeea;
--met:#c81e3a;--c0:#2563c9;--c1:#a15c00;--c2:#0b7a70;--c3:#7a3fc4;--c4:#4d5a6a;--pale:#b4bcc7}
@media (prefers-color-scheme:dark){:root{--paper:#161b22;--ink:#e6eaf0;--muted:#9aa6b4;
--grid:#2a323d;--limit:#ff9b6a;--bad:#31201f;--met:#ff6b81;--c0:#6ea8ff;--c1:#e0a44a;
--c2:#3fc4b4;--c3:#b990ff;--c4:#aab6c4;--pale:#4b5665}}
"""
# The style of charts, on pages and in files.
CHART: Final = """
.grid{stroke:var(--grid);stroke-width:1}
.tick{fill:var(--muted);font-size:12px}
.bad{fill:var(--bad)}
.limit{stroke:var(--limit);stroke-width:1.5;stroke-dasharray:6 4;fill:none}
.limit-label{fill:var(--limit);font-size:12px;font-weight:600;paint-order:stroke;
stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}
.trace{fill:none;stroke:var(--c);stroke-width:1.75;stroke-linejoin:round}
.trace.repeated{stroke-opacity:.75;stroke-dasharray:3 3}
.dot,.odd,.met{fill:none;stroke:var(--c);stroke-width:5;stroke-linecap:round}
.odd{stroke-width:7;stroke-linecap:square}
.met{stroke:var(--met);stroke-width:7}
.line .limit{display:none}
.line.first .limit{display:inline}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}
.met.many{stroke-width:4.5}
.pale{--c:var(--pale)}
.pale .trace{stroke-width:1}
.pale .met{stroke-width:4}
"""
_OWN: Final = """
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
    SubElement(root, "style").text = COLOURS + CHART + _OWN
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
