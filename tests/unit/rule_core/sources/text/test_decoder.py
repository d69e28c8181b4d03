"""TextDecoder: the encoding is recognised, whatever the sizes of the pieces."""

import codecs

import pytest

from rule_core.sources.text.decoder import BINARY, NOT_UTF8, TextDecoder

TEXT = "pérte: 1 損失\nnext\n"


def decoded(content: bytes, size: int) -> tuple[str, str]:
    decoder = TextDecoder()
    pieces = [decoder.decode(content[i : i + size]) for i in range(0, len(content), size)]
    return "".join([*pieces, decoder.decode(b"", is_last=True)]), decoder.problem


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize(
    ("content", "text", "problem"),
    [
        (TEXT.encode(), TEXT, ""),
        (TEXT.encode("utf-8-sig"), TEXT, ""),
        (codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), TEXT, ""),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), TEXT, ""),
        (TEXT.encode("utf-16-le"), TEXT, ""),
        (TEXT.encode("utf-16-be"), TEXT, ""),
        (codecs.BOM_UTF8 + b"p\xe9rte\n", "pérte\n", NOT_UTF8),
        (b"p\xe9rte 1 \x80\n\x81", "pérte 1 €\n\ufffd", NOT_UTF8),
        (codecs.BOM_UTF16_LE + b"\x00\xd8a\x00", "\ufffda", ""),
        (b"a\rb\r\nc\n", "a\nb\nc\n", ""),
        (b"", "", ""),
        (b"x", "x", ""),
    ],
)
def test_text_is_that_which_was_written(content: bytes, text: str, problem: str, size: int) -> None:
    assert decoded(content, size) == (text, problem)


@pytest.mark.parametrize("content", [b"\x80\x04\x95\x12\x00\x00\n", b"SQLite format 3\x00\n1\n"])
def test_a_binary_file_has_no_text(content: bytes) -> None:
    assert decoded(content, 1000) == ("", BINARY)


def test_zeros_after_a_crash_are_no_binary_file() -> None:
    text = "step 1 loss 2.5\nstep 2" + "\0" * 3000 + "\nstep 3 loss 2.4\n"
    assert decoded(text.encode(), 1000) == (text, "")


def test_a_file_that_was_empty_at_its_end_may_begin_later() -> None:
    decoder = TextDecoder()
    assert decoder.decode(b"", is_last=True) == ""
    assert decoder.decode(codecs.BOM_UTF16_LE + "a\n".encode("utf-16-le")) == "a\n"
