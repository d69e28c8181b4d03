"""Charts as pages and pictures: what they hold, where they are shown, what a stranger may name."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rule_core.analysis.charts import bokeh_drawing, chart
from rule_core.analysis.charts.chart import Bars, LineMark, Panel, PanelChart, Rows, Spans
from rule_core.analysis.charts.drawn import Drawn
from rule_core.exceptions import SMDebugRuntimeError, SMDebugValueError

pytest.importorskip("bokeh", reason="bokeh is not installed.")
pytest.importorskip("matplotlib", reason="matplotlib is not installed.")

HOSTILE = (
    "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>$$\\x$$\u202e\x1b"
)
PNG = b"\x89PNG\r\n\x1a\n"
MS = 1.6e12


def a_line(count: int = 3) -> LineMark:
    x = MS + np.arange(count, dtype=float)
    return LineMark(x, x % 7, np.arange(count), {"step": ["s"] * count})


def panels() -> tuple[Panel, ...]:
    """Return a panel of each kind, named as badly as can be."""
    many = Rows(MS, MS + 9, np.array([[0, np.nan], [50, 100]]), [HOSTILE, "b"])
    spans = Spans(np.array([MS]), np.array([MS + 5]), np.array([0]), [HOSTILE], [HOSTILE])
    lines = [Panel(HOSTILE, "time", "%", a_line(count), in_time=True) for count in (3, 1, 0)]
    return (
        *lines,
        Panel(f"\u4e2d{HOSTILE}", "ms", "events", Bars(np.array([0.0, 1, 2]), np.array([3, 4]))),
        Panel(HOSTILE, "", "", spans, in_time=True, x_range=(MS, MS + 9)),
        Panel(HOSTILE, "", "", many, in_time=True, y_range=(0, 2)),
    )


class Some(Drawn):
    """A chart of any panels."""

    def __init__(self, *some: Panel, **more: Any) -> None:
        self._chart = PanelChart(HOSTILE, some, **more)

    def chart(self) -> PanelChart:
        return self._chart


@pytest.mark.merge
def test_a_page_needs_nothing_else_and_runs_no_strangers_script(tmp_path: Path) -> None:
    place = Some(*panels(), columns=2, note="<b>").save(tmp_path / "new" / "chart.html")
    text = place.read_text(encoding="utf-8")
    assert place == tmp_path / "new" / "chart.html"
    assert re.findall(r"<(?:script|link)[^>]*(?:src|href)=", text) == []
    assert "window.hit = 1</script>" not in text
    assert "<img src=x" not in text
    assert "<p>&lt;b&gt;</p>" in text


@pytest.mark.merge
def test_a_picture(tmp_path: Path) -> None:
    place = Some(*panels(), columns=4, note="<b>").save(str(tmp_path / "chart.PNG"))
    content = place.read_bytes()
    assert content.startswith(PNG)
    width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (1000, 45 + 2 * chart.HEIGHT)


def test_nothing_is_drawn_too(tmp_path: Path) -> None:
    empty = Some(note="Nothing.")
    assert empty.save(tmp_path / "empty.png").read_bytes().startswith(PNG)
    assert "<p>Nothing.</p>" in empty.save(tmp_path / "empty.html").read_text(encoding="utf-8")


def test_another_kind_of_file(tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=r"is saved as \.html or \.png, got '.*/a\.svg'\."):
        Some().save(tmp_path / "a.svg")


@pytest.mark.parametrize(
    ("package", "suffix", "text"),
    [
        (
            "bokeh.document",
            "html",
            "Charts as pages need bokeh, which the variant 'full' of the image has. ",
        ),
        (
            "matplotlib.dates",
            "png",
            "Charts as pictures need matplotlib, which the variant 'full' of the image has. ",
        ),
    ],
)
def test_a_missing_extra_is_reported(
    package: str, suffix: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        SMDebugRuntimeError,
        match=rf"{text}Install it with pip install .*'rule-runner\[profiler\]'\.$",
    ):
        Some().save(tmp_path / f"a.{suffix}")


def test_lines_are_thinned_but_keep_their_extremes() -> None:
    y = np.zeros(10_001)
    y[[777, 5003]] = 9, -9
    y[2000:3000] = np.nan
    line = LineMark(
        np.arange(10_001.0), y, np.arange(10_001), {"n": [str(at) for at in range(10_001)]}
    )
    few = line.thin(1000)
    assert len(few.x) <= 1002
    assert {0, 777, 5003, 10_000} <= set(few.x.tolist())
    assert few.x.tolist() == few.index.tolist() == [float(one) for one in few.notes["n"]]
    assert np.isnan(few.y).sum() > 0
    assert line.thin(10_001) is line


def test_a_chart_is_no_larger_than_can_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart, "MOST_PANELS", 2)
    monkeypatch.setattr(chart, "POINTS", 4000)
    found = PanelChart("", tuple(Panel("", "", "", a_line(5000)) for _ in range(5)), note="So.")
    bounded = found.limit()
    assert [len(one.mark.x) <= 2002 for one in bounded.panels] == [True, True]  # type: ignore[union-attr] # lines
    assert bounded.note == "So. 3 more panels are not shown; select fewer."


def test_as_many_rows_are_named_as_there_is_room_for() -> None:
    rows = [str(at) for at in range(100)]
    panel = Panel("", "", "", a_line(), height=340)
    assert list(panel.row_labels(rows)) == list(range(0, 100, 5))
    assert panel.row_labels(["a" * 41]) == {0: "a" * 40 + "..."}


def test_names_are_cut_and_written_out() -> None:
    assert chart.printable("a" * 101) == "a" * 100 + "..."
    assert chart.printable("a\u202eb\n") == "a\\u202eb\\n"


@pytest.mark.parametrize("name", ["$$x$$", r"\(x\)", r"\[x\]"])
def test_names_are_not_taken_for_formulas(name: str) -> None:
    label = bokeh_drawing._plain(name)
    assert label.replace("\u2060", "") == name
    assert not re.search(r"\$\$|\\\(|\\\[", label)


# -- in a notebook ---------------------------------------------------------------------------


class Notebook:
    """Stands for IPython and its kernel.

    Attributes
    ----------
    shown, updated
        What was shown; with what it was replaced.
    execution_count
        The number of the cell.
    """

    def __init__(self) -> None:
        self.execution_count = 1
        self.shown: list[dict[str, str]] = []
        self.updated: list[dict[str, str]] = []
        self.kernel: object = self

    def get_ipython(self) -> "Notebook":
        return self

    @property
    def display(self) -> SimpleNamespace:
        def display(bundle: dict[str, str], *, raw: bool, display_id: bool) -> SimpleNamespace:
            assert (raw, display_id) == (True, True)
            self.shown.append(bundle)
            return SimpleNamespace(
                update=lambda new, raw: self.updated.append(new) if raw else None
            )

        return SimpleNamespace(display=display)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    found = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", found)
    monkeypatch.setattr(bokeh_drawing, "import_bokeh", _no_bokeh)
    monkeypatch.setattr("rule_core.analysis.charts.drawn.html_page", lambda _: "<a>")
    return found


def _no_bokeh() -> None:
    pytest.fail("A page was drawn.")


def test_a_chart_is_shown_once_a_cell_and_renewed(notebook: Notebook) -> None:
    some = Some(*panels(), columns=4, linked=True)
    some.show()
    frame = notebook.shown[0]["text/html"]
    assert frame.startswith('<iframe srcdoc="&lt;a&gt;" title="&lt;/script&gt;')
    assert f'height="{60 + 30 + 2 * chart.HEIGHT}"' in frame
    assert notebook.shown[0]["text/plain"] == "<Some>"
    assert some._repr_html_() is None  # the cell ends with the chart
    notebook.execution_count += 1
    assert some._repr_html_() == frame
    some._renew()
    assert notebook.updated == notebook.shown


def test_nothing_is_shown_elsewhere(
    notebook: Notebook, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = Some()
    notebook.kernel = None  # IPython in a terminal
    some.show()
    some._renew()
    monkeypatch.delitem(sys.modules, "IPython")
    some.show()
    assert (notebook.shown, notebook.updated) == ([], [])
    assert capsys.readouterr().out == ""
    assert str(some._repr_html_()).startswith("<iframe")
