"""Notebooks: what cells printed and showed, in pieces, rewritten, cut and hostile."""

import json
from collections.abc import Mapping

import pytest
from source_files import Content, Followed, read, recognized

from rule_core.sources.documents.notebook import FORMAT, outputs, tables_of
from rule_core.sources.format import HEAD_BYTES

ROW = "<tr><td>%d</td><td>%s</td></tr>"
LOSSES = [f"Epoch {epoch}/9: loss={1 / (1 + epoch)}\n" for epoch in range(1, 5)]


def notebook(*outputs: Mapping[str, object], source: str = "") -> bytes:
    """Return a notebook with one cell for each output."""
    cells = [{"cell_type": "code", "source": [source], "outputs": [out]} for out in outputs]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}, indent=1).encode()


def stream(*lines: str, name: str = "stdout") -> dict[str, object]:
    return {"output_type": "stream", "name": name, "text": [*lines]}


def table(*losses: str, header: str = "<th>epoch</th><th>train_loss</th>") -> dict[str, object]:
    rows = "".join(ROW % row for row in enumerate(losses))
    shown = f"<style>p {{}}</style><table><tr>{header}</tr>{rows}</table><p>"
    return {"output_type": "display_data", "data": {"text/html": shown, "text/plain": "<HTML>"}}


def losses(*values: float) -> Content:
    return {"train_loss": [(str(step), value) for step, value in enumerate(values)]}


def test_lines_of_text() -> None:
    content = read(FORMAT, notebook(stream("begun\n"), stream(*LOSSES)), "a.ipynb")
    assert content == {"loss": [(str(epoch), 1 / (1 + epoch)) for epoch in range(1, 5)]}


def test_a_line_that_another_stream_interrupts() -> None:
    lines = "".join(LOSSES)
    outputs = [stream(lines[:30]), stream("warning\n", name="stderr"), stream(lines[30:])]
    cells = [{"cell_type": "code", "outputs": outputs}]
    content = read(FORMAT, json.dumps({"cells": cells}).encode(), "a.ipynb")
    assert content == read(FORMAT, notebook(stream(*LOSSES)), "a.ipynb")


def test_a_bar_that_another_stream_interrupts() -> None:
    outputs = [
        stream("Epoch 1/2\n 2/9 [==>...] - ETA: 1s - loss: 0.75"),
        stream("a warning\n", name="stderr"),
        stream("9/9 [======] - 2s - loss: 0.5\nEpoch 2/2\n9/9 [======] - 2s - loss: 0.25\n"),
    ]
    content = json.dumps({"cells": [{"cell_type": "code", "outputs": outputs}]}).encode()
    assert read(FORMAT, content, "a.ipynb") == {"loss": [("1", 0.5), ("2", 0.25)]}


def test_objects_that_are_shown_as_text_have_no_numbers() -> None:
    figure = {
        "output_type": "display_data",
        "data": {"text/plain": "<Figure size 640x480 with 1 Axes>"},
    }
    assert read(FORMAT, notebook(stream(*LOSSES), figure), "a.ipynb").keys() == {"loss"}


def test_only_outputs_of_code_count() -> None:
    content = notebook(table("1"), source="".join(LOSSES))
    cells = json.loads(content)["cells"]
    cells.append({"cell_type": "markdown", "source": LOSSES, "outputs": [stream(*LOSSES)]})
    assert read(FORMAT, json.dumps({"cells": cells}).encode(), "a.ipynb") == losses(1)


def test_a_table_and_cells_without_a_value() -> None:
    content = read(FORMAT, notebook(table("No log", "0.5", "<b>0.25</b>")), "a.ipynb")
    assert content == {"train_loss": [("1", 0.5), ("2", 0.25)]}


def test_two_tables_are_segments() -> None:
    content = read(FORMAT, notebook(table("1"), table("2", "1")), "a.ipynb")
    steps = ["0", "0 of segment 2", "1 of segment 2"]
    assert [step for step, _ in content["train_loss"]] == steps


def test_a_data_frame_that_is_shown_again_is_left_out() -> None:
    header = "<th></th><th>epoch</th><th>train_loss</th>"
    assert read(FORMAT, notebook(table("1", header=header)), "a.ipynb") == {}
    assert read(FORMAT, notebook(table("1", header="<th>x</th><th>loss</th>")), "a.ipynb") == {}


def test_a_notebook_that_grows_and_is_run_again() -> None:
    run = Followed(FORMAT, "a.ipynb")
    assert run.look(notebook(table("1", "2"))) == losses(1, 2)
    assert run.look(notebook(table("1", "2", "3"))) == losses(1, 2, 3)
    assert run.index.segments == []
    again = run.look(notebook(table("4", "5")))["train_loss"]
    assert again[3:] == [("0 of segment 2", 4.0), ("1 of segment 2", 5.0)]


@pytest.mark.parametrize(
    "content", [b"", b"{}x", b"[]", b'{"cells": 3}', b'{"cells": ' + b"[" * 10**5, b"\xff\x00"]
)
def test_damage_is_named(content: bytes) -> None:
    run = Followed(FORMAT, "a.ipynb", {"a.ipynb": content})
    assert run.end() == {}
    assert run.problems[0].startswith("a.ipynb: It is not read: it is no notebook: ")


@pytest.mark.parametrize(
    "shown",
    [
        "<td" * 300_000,
        "<table><tr>" + "<th>loss" * 100_000,
        "<!--" * 300_000 + "<table>" * 10_000,
        "<table><tr><th>epoch<th>loss<tr><td>" + "&#" * 300_000,
        "<script>while (true) {}</script>" * 1000,
    ],
)
def test_hostile_tables(shown: str) -> None:
    for table_rows in tables_of(shown):
        assert all(len(cell) <= 1000 for row in table_rows for cell in row)


def test_images_are_passed_over() -> None:
    image = {"output_type": "display_data", "data": {"image/png": "A" * 10**6, "text/plain": "x"}}
    assert [*outputs(notebook(image))] == ["x"]


def test_what_is_recognized() -> None:
    image = {"output_type": "display_data", "data": {"image/png": "A" * HEAD_BYTES}}
    files = {
        "a.ipynb": notebook(table("1")),
        "b.ipynb": notebook(stream(*LOSSES)),
        "c.ipynb": notebook(stream("x\n"), source="".join(LOSSES)),
        "d.ipynb": notebook(table("1"), image),
        "e.ipynb": notebook(image, table("1"), source="net.fit(3)"),
        "f.ipynb": notebook(image),
        "g.ipynb": b"x",
        "h.json": notebook(table("1")),
    }
    assert [item.key for item in recognized(FORMAT, files)] == [f"{n}.ipynb" for n in "abde"]
