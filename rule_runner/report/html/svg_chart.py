"""SVG charts: a quantity and its limit over the steps, for pages and standalone files."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, tostring

from rule_core.analysis.axis import LENGTH, Axis, number, step_number, steps_axis, values_axis
from rule_core.analysis.thinning import thinned
from rule_runner.errors import counted
from rule_runner.report.html.series import ChartLine, Drawing, Point

COLOURED: Final = 5  # lines with an individual colour; the others are pale
COLUMNS: Final = 360  # columns of a coloured line after thinning
PALE_COLUMNS: Final = 120
MARK_COLUMNS: Final = 200  # columns of marks that do not overlap
LINE_HEIGHT: Final = 80  # of text
NOT_FINITE: Final = ("NaN", "Infinity", "-Infinity")
DOTTED: Final = 40  # lines with up to so many points show each point

Position = tuple[int, int | None]  # from left and top
GAP: Final[Position] = (0, None)


@dataclass(frozen=True, slots=True)
class _Path:
    """A drawn line: indices of its points, and their positions on both axes."""

    line: ChartLine
    kept: list[int]
    positions: list[tuple[int, int | None, int | None]]  # step, measured, limit; from top left

    @property
    def points(self) -> list[Point]:
        return [self.line.points[index] for index in self.kept]


class SvgChart:
    """The geometry of a drawing, the source of its SVG and of the data of its page.

    Parameters
    ----------
    drawing
        At least one line, each with at least one point.
    """

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        points = [point for line in drawing.lines for point in line.points]
        values = [value for point in points for value in (point.measured, point.limit)]
        values += _beside(drawing, values)
        self.steps = steps_axis(point.step for point in points)
        self.values = values_axis(values, log=drawing.quantity.log)
        self.paths = [
            self._path(line, index < COLOURED) for index, line in enumerate(drawing.lines)
        ]

    def _path(self, line: ChartLine, coloured: bool) -> _Path:
        positions = [self.steps.position(point.step) or 0 for point in line.points]
        kept = kept_points(line.points, positions, COLUMNS if coloured else PALE_COLUMNS)
        points = [line.points[index] for index in kept]
        where = [
            (positions[index], self._down(point.measured), self._down(point.limit))
            for index, point in zip(kept, points, strict=True)
        ]
        return _Path(line, kept, where)

    def _down(self, value: float) -> int | None:
        """Return the distance of a value from the top."""
        position = self.values.position(value)
        return None if position is None else LENGTH - position

    def data(self) -> list[dict[str, Any]]:
        """Return the labels of points for the page, by line.

        A point is its distance from left and top, its step, measured value and limit, and whether
        it is a finding.
        """
        return [
            {
                "name": path.line.name,
                "points": [
                    [
                        across,
                        self._edge() if down is None else down,
                        point.label,
                        number(point.measured),
                        number(point.limit),
                        int(point.met),
                    ]
                    for point, (across, down, _) in zip(path.points, path.positions, strict=True)
                ],
            }
            for path in self.paths
        ]

    def title(self) -> str:
        """Return the title of the chart."""
        return f"{self.drawing.quantity.label} over the steps"

    def description(self) -> str:
        """Return an accessible description of the chart."""
        quantity, lines = self.drawing.quantity, self.drawing.lines
        steps = [point.step for line in lines for point in line.points]
        worst = lines[0].worst(quantity.worse)
        met = [point for line in lines for point in line.met]
        first = min(met, key=lambda point: (point.segment, point.step), default=None)
        where = "at no step" if first is None else f"first at step {first.label}"
        return (
            f"{counted(len(lines), 'line')}, steps {min(steps):,} to {max(steps):,}. "
            f"The condition was met {where}. Worst: {lines[0].name}, "
            f"{number(worst.measured)} at step {worst.label} against the limit "
            f"{number(worst.limit)}; {quantity.worse} the limit is bad."
        )

    @property
    def limit_label(self) -> str:
        """Legend of the limit; "" if none is visible."""
        limit, lines = self.drawing.limit, self.drawing.lines
        if limit is not None:
            return f"limit {number(limit)}" if math.isfinite(limit) else ""
        return "its limit" if len(lines) == 1 else f"limit of {lines[0].name}"

    @property
    def odd_label(self) -> str:
        """Legend of the values at the edge; "" if there are none."""
        odd = {
            number(point.measured)
            for line in self.drawing.lines
            for point in line.points
            if not self.values.contains(point.measured)
        }
        names = [text if text in NOT_FINITE else "0 or less" for text in odd]
        return f"at the edge: {', '.join(sorted(set(names)))}" if names else ""

    @property
    def has_repeated(self) -> bool:
        """Whether a line has points at steps that the run repeated later."""
        return any(point.is_repeated for line in self.drawing.lines for point in line.points)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The lines, the worst first, as a table."""
        return [
            {
                "line_index": index,
                "name": line.name,
                "colour": f"c{index}" if index < COLOURED else "pale",
                "worst": number(worst.measured),
                "limit": number(worst.limit),
                "first": line.met[0].label if line.met else "never",
            }
            for index, line in enumerate(self.drawing.lines)
            for worst in [line.worst(self.drawing.quantity.worse)]
        ]

    def svg(self, name: str) -> str:
        """Return the chart for a page, with full width and labels that do not scale.

        Parameters
        ----------
        name
            A unique identifier on the page.
        """
        root = Element("svg", {"class": "plot", "role": "img", "width": "100%", "height": "100%"})
        root.set("aria-labelledby", f"{name}-title {name}-desc")
        SubElement(root, "title", {"id": f"{name}-title"}).text = self.title()
        SubElement(root, "desc", {"id": f"{name}-desc"}).text = self.description()
        self.draw(root)
        return tostring(root, encoding="unicode")

    def draw(self, root: Element) -> None:
        """Draw axes and lines into an element, with its full size."""
        _grid(root, self.steps, self.values)
        inner = SubElement(root, "svg", {"viewBox": f"0 0 {LENGTH} {LENGTH}"})
        inner.set("preserveAspectRatio", "none")
        inner.attrib.update({"width": "100%", "height": "100%", "overflow": "visible"})
        self._limit(inner)
        for index, path in reversed(list(enumerate(self.paths))):
            colour = f"c{index}" if index < COLOURED else "pale"
            group = SubElement(inner, "g", {"class": f"line {colour}{' first' * (index == 0)}"})
            group.set("data-line", str(index))
            self._line(group, path)
        self._labels(root)

    def _limit(self, inner: Element) -> None:
        """Draw the limit shared by all lines, and shade its wrong side."""
        if self.drawing.limit is None or not math.isfinite(self.drawing.limit):
            return
        down = self._down(self.drawing.limit) or 0
        edge = self._edge()
        box = {"x": "0", "width": str(LENGTH), "y": str(min(down, edge))}
        SubElement(inner, "rect", {"class": "bad", "height": str(abs(down - edge)), **box})
        _stroke(inner, "limit", f"M0 {down}H{LENGTH}")

    def _edge(self) -> int:
        """Return the position of the bad end of the axis."""
        return 0 if self.drawing.quantity.worse == "above" else LENGTH

    def _line(self, group: Element, path: _Path) -> None:
        points = list(zip(path.points, path.positions, strict=True))
        if self.drawing.limit is None:
            limits = [(x, y if math.isfinite(point.limit) else None) for point, (x, _, y) in points]
            for segments in _parts(path.points, limits):
                _stroke(group, "limit", _run(segments))
        inside = [
            (x, y if self.values.contains(point.measured) else None) for point, (x, y, _) in points
        ]
        repeated, current = _parts(path.points, inside)
        _stroke(group, "trace repeated", _run(repeated))
        _stroke(group, "trace", _run(current))
        if len(path.line.points) <= DOTTED:
            _stroke(group, "dot", _dots(position for position in inside if position[1] is not None))
        outside = [point for point, _ in points if not self.values.contains(point.measured)]
        _stroke(group, "odd", _dots(self._marks(outside)))
        met = list(self._marks(path.line.met))
        _stroke(group, "met many" if len(met) > DOTTED else "met", _dots(met))

    def _marks(self, points: Iterable[Point]) -> Iterable[tuple[int, int]]:
        """Return the positions of points, without overlapping ones.

        A value outside of the axis is marked at that end, NaN at the bad end.
        """
        cell = LENGTH // MARK_COLUMNS
        first: dict[tuple[int, int], tuple[int, int]] = {}
        for point in points:
            across, down = self.steps.position(point.step) or 0, self._down(point.measured)
            down = self._edge() if down is None else down
            first.setdefault((across // cell, down // (4 * cell)), (across, down))
        return first.values()

    def _labels(self, root: Element) -> None:
        limit = self.drawing.limit
        if limit is None or not math.isfinite(limit):
            return
        down = self._down(limit) or 0
        attributes = {"x": "100%", "y": _percent(down), "dx": "-4"}
        attributes |= {"dy": "-5" if down > LINE_HEIGHT else "14", "text-anchor": "end"}
        add_text(root, "limit-label", f"limit {number(limit)}", attributes)


def _beside(drawing: Drawing, values: Iterable[float]) -> list[float]:
    """Return values on both sides of the common limit, so that the axis shows both.

    On a linear axis only the good side, and none if the limit is 0, the end of many quantities.
    """
    limit = drawing.limit
    if not limit:
        return []
    if drawing.quantity.log:
        return [limit / 10, limit * 10]
    room = max((abs(value - limit) for value in values if math.isfinite(value)), default=0.0) / 20
    return [limit - room if drawing.quantity.worse == "above" else limit + room]


def _grid(root: Element, steps: Axis, values: Axis) -> None:
    for tick in values.ticks:
        y = _percent(LENGTH - (values.position(tick) or 0))
        SubElement(root, "line", {"class": "grid", "x1": "0", "x2": "100%", "y1": y, "y2": y})
        attributes = {"x": "-8", "y": y, "dy": "4", "text-anchor": "end"}
        add_text(root, "tick", number(tick), attributes)
    for tick in steps.ticks:
        x = _percent(steps.position(tick) or 0)
        attributes = {"x": x, "y": "100%", "dy": "18", "text-anchor": "middle"}
        add_text(root, "tick", step_number(tick), attributes)


def add_text(parent: Element, kind: str, content: str, attributes: dict[str, str]) -> None:
    """Add a text of a class to an element; `attributes` are its others."""
    SubElement(parent, "text", {"class": kind, **attributes}).text = content


def _percent(position: int) -> str:
    return f"{position * 100 / LENGTH:g}%"


def _stroke(parent: Element, kind: str, d: str) -> None:
    if d:
        path = SubElement(parent, "path", {"class": kind, "d": d})
        path.set("vector-effect", "non-scaling-stroke")


def _run(positions: Iterable[Position]) -> str:
    """Return the path through positions, with gaps at missing ones."""
    commands: list[str] = []
    broken = True
    for across, down in positions:
        if down is not None:
            commands.append(f"{'M' if broken else 'L'}{across} {down}")
        broken = down is None
    return "".join(commands)


def _parts(
    points: Sequence[Point], positions: Sequence[Position]
) -> tuple[list[Position], list[Position]]:
    """Return the positions of the repeated points of a line, and those of the others.

    Both have gaps between segments. The repeated part of a segment begins at the last point before.
    """
    repeated: list[Position] = []
    current: list[Position] = []
    previous: Point | None = None
    for index, (point, position) in enumerate(zip(points, positions, strict=True)):
        if previous is None or previous.segment != point.segment:
            repeated.append(GAP)
            current.append(GAP)
        elif point.is_repeated and not previous.is_repeated:
            repeated += [GAP, positions[index - 1]]
        (repeated if point.is_repeated else current).append(position)
        previous = point
    return repeated, current


def _dots(positions: Iterable[Position]) -> str:
    """Return a path of single points, which line caps turn into dots."""
    return "".join(f"M{across} {down}h0" for across, down in positions)


def kept_points(points: Sequence[Point], positions: Sequence[int], columns: int) -> list[int]:
    """Return the indices of the points that a line of `columns` columns needs.

    These are the first and the last point of each column and segment, and those of `thinned`.
    `positions` are the positions of the points on the axis.
    """
    keys = [
        (point.segment, position * columns // (LENGTH + 1))
        for point, position in zip(points, positions, strict=True)
    ]
    starts = [index for index, key in enumerate(keys) if index == 0 or key != keys[index - 1]]
    ends = [start - 1 for start in starts[1:]]
    kept = thinned([point.measured for point in points], starts)
    return sorted({*kept.tolist(), *starts, *ends})
