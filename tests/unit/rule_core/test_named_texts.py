"""NamedTexts: the texts in a file of another language."""

from pathlib import Path

import pytest

from rule_core.named_texts import NamedTexts


@pytest.mark.parametrize("comment", ["-- name: {}", "// name: {}", "<!-- name: {} -->"])
def test_a_text_ends_before_the_last_line_end(tmp_path: Path, comment: str) -> None:
    path = tmp_path / "texts"
    first, second = comment.format("first"), comment.format("second")
    path.write_text(f"What a reader should know.\n{first}\na\n\nb\n\n{second}\n é -- c\n", "utf-8")
    texts = NamedTexts(path)
    assert texts["first"] == "a\n\nb\n"
    assert texts["second"] == " é -- c"
    with pytest.raises(KeyError):
        texts["third"]


def test_a_file_is_read_once_on_first_use(tmp_path: Path) -> None:
    path = tmp_path / "texts.sql"
    texts = NamedTexts(path)
    path.write_text("-- name: one\nSELECT 1\n")
    assert texts["one"] == "SELECT 1"
    path.unlink()
    assert texts["one"] == "SELECT 1"
