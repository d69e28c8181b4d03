#!/usr/bin/env python3
"""Show where the time of a command of rule-runner goes; it runs in this process.

    .venv/bin/python benchmarks/speed/sampled_profile.py evaluate --trial runs/mnist --rule all

A timer looks at the stack of the main thread every few milliseconds of processor time, which costs
next to nothing, so that calls that are many and short weigh no more than they do. *Own* is time in
a function and in what it calls of compiled modules; *all* is with whatever else it calls. Imports
are one line. `--flame FILE` also draws the stacks: a flame graph in SVG, whose boxes show their
names where the pointer is.
"""

import html
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType

import click

INTERVAL_S = 0.001
ROOT = Path(__file__).parents[2]
Place = tuple[str, str]  # a part of the program, and a function in it
IMPORTS: Place = ("imports", "imports")
Stack = tuple[str, ...]  # functions, the outermost first
WIDTH, ROW, LETTER, NARROWEST = 1200, 16, 7, 1.0  # of a flame graph, in pixels


class Sampler:
    """Counts where the program is."""

    def __init__(self, lines: bool) -> None:
        self.samples = 0
        self.own: Counter[Place] = Counter()
        self.all: Counter[Place] = Counter()
        self.parts: Counter[str] = Counter()
        self.stacks: Counter[Stack] = Counter()
        self._lines = lines
        self._places: dict[tuple[CodeType, int], Place] = {}

    def start(self) -> None:
        """Look from now on."""
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)

    def stop(self) -> None:
        """Look no more."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _look(self, _: int, frame: FrameType | None) -> None:
        stack = []
        while frame is not None and frame.f_globals is not globals():
            stack.append(self._place(frame))
            frame = frame.f_back
        if IMPORTS in stack:
            stack = [IMPORTS]
        if stack:
            self.samples += 1
            self.own[stack[0]] += 1
            self.all.update(set(stack))
            self.parts.update({part for part, _ in stack})
            self.stacks[tuple(name for _, name in reversed(stack))] += 1

    def _place(self, frame: FrameType) -> Place:
        code = frame.f_code
        line = frame.f_lineno if self._lines else code.co_firstlineno
        place = self._places.get((code, line))
        if place is None:
            place = self._places[code, line] = self._named(code, line)
        return place

    def _named(self, code: CodeType, line: int) -> Place:
        path = Path(code.co_filename)
        if path.is_relative_to(ROOT) and ".venv" not in path.parts:
            inside = path.relative_to(ROOT)
            return str(inside.parent), f"{inside}:{line} {code.co_qualname}"
        if "importlib._bootstrap" in code.co_filename:
            return IMPORTS
        _, packages, inside = str(path).rpartition("site-packages/")
        part = inside.partition("/")[0] if packages else "standard library"
        return part, f"{part}/{path.name}:{line} {code.co_qualname}"

    def tables(self, top: int) -> str:
        """Return the time by part of the program, and by function."""
        own: Counter[str] = Counter()
        for (part, _), count in self.own.items():
            own[part] += count
        parts = [(own[part], self.parts[part], part) for part in self.parts]
        functions = [(count, self.all[place], place[1]) for place, count in self.own.items()]
        shown = [sorted(rows, reverse=True)[:top] for rows in (parts, functions)]
        return "\n\n".join(map(self._table, shown))

    def _table(self, rows: list[tuple[int, int, str]]) -> str:
        lines = [
            f"{own / self.samples:6.1%} {every / self.samples:6.1%}  {name}"
            for own, every, name in rows
        ]
        return "\n".join(["   own    all", *lines])


def flame(stacks: Mapping[Stack, int]) -> str:
    """Return a flame graph: callers below, and as wide as the time that they took."""
    depth = max(map(len, stacks), default=0)
    scale = WIDTH / max(sum(stacks.values()), 1)
    boxes = [
        f'<svg x="{start * scale:.2f}" y="{(depth - level - 1) * ROW}" width="{count * scale:.2f}" '
        f'height="{ROW - 1}"><title>{html.escape(name)}: {count}</title>'
        f'<rect width="100%" height="100%" fill="hsl({sum(name.encode()) % 50},80%,65%)"/>'
        f'<text x="2" y="11">{_shown(name, int(count * scale / LETTER))}</text></svg>'
        for level, start, count, name in _boxes([*stacks.items()], 0, 0)
        if count * scale >= NARROWEST
    ]
    style = 'font-size="11" font-family="monospace" xmlns="http://www.w3.org/2000/svg"'
    return "\n".join([f'<svg {style} viewBox="0 0 {WIDTH} {depth * ROW}">', *boxes, "</svg>\n"])


def _shown(name: str, length: int) -> str:
    """Return a name as a box shows it: without its file, cut to a length."""
    return html.escape(name.rpartition(" ")[2][:length])


def _boxes(
    stacks: list[tuple[Stack, int]], level: int, start: int
) -> Iterator[tuple[int, int, int, str]]:
    """Yield level, start, width and name of each box from a level on."""
    groups: dict[str, list[tuple[Stack, int]]] = {}
    for stack, count in stacks:
        if len(stack) > level:
            groups.setdefault(stack[level], []).append((stack, count))
    for name, group in sorted(groups.items()):
        width = sum(count for _, count in group)
        yield level, start, width, name
        yield from _boxes(group, level + 1, start)
        start += width


@click.command(
    help=__doc__.replace("\n\n    ", "\n\n\b\n    "),
    context_settings={"ignore_unknown_options": True},
)
@click.option("--top", default=25, help="Lines of each table.")
@click.option("--lines", is_flag=True, help="Tell lines apart, not only functions.")
@click.option("--flame", "drawing", type=Path, help="A file for a flame graph, in SVG.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def main(top: int, lines: bool, drawing: Path | None, command: tuple[str, ...]) -> None:
    """Run a command, and say where its time went."""
    sampler = Sampler(lines)
    sampler.start()
    from rule_runner.cli import main as rule_runner

    sys.argv = ["rule-runner", *command]
    try:
        rule_runner()
    finally:
        sampler.stop()
        if sampler.samples:
            said = f"{time.process_time():.2f} s of processor time, {sampler.samples} looks"
            if drawing is not None:
                drawing.write_text(flame(sampler.stacks), "utf-8")
            click.echo(f"\n{said}\n\n{sampler.tables(top)}", err=True)


if __name__ == "__main__":
    main()
