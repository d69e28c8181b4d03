"""Histories in YAML: lists of mappings, cut and hostile."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_files import Followed, read, recognized

from rule_core.sources.documents.document_source import DocumentError
from rule_core.sources.documents.yaml_document import FORMAT, decode

TEXT = b"# ours\n---\n- epoch: 0\n  train: {loss: 2.5}\n- epoch: 1\n  train: {loss: .NaN}\n"


def test_a_list_of_mappings() -> None:
    assert repr(read(FORMAT, TEXT)) == "{'train/loss': [('0', 2.5), ('1', nan)]}"
    assert [item.key for item in recognized(FORMAT, {"a.yaml": TEXT, "b.txt": TEXT})] == ["a.yaml"]


def test_the_last_item_may_still_be_written() -> None:
    followed = Followed(FORMAT, "log", {"log": b"- loss: 2.5\n"})
    assert followed.look() == {}
    start = b"- loss: 2.5\n  epoch: 3\n- loss: 1.5\n"
    assert followed.look(start) == {"loss": [("3", 2.5)]}
    assert followed.look(start + b"  epoch: 4\n") == {"loss": [("3", 2.5), ("4", 1.5)]}


def test_a_last_item_with_other_names_is_read_at_the_end() -> None:
    followed = Followed(FORMAT, "log", {"log": b"- {epoch: 1, loss: 2}\n- {epoch: 2, lr: 1}\n"})
    assert followed.look() == {"loss": [("1", 2.0)]}
    assert followed.end() == {"loss": [("1", 2.0)], "lr": [("2", 1.0)]}


def test_the_start_of_a_cut_file_is_read_at_the_end() -> None:
    followed = Followed(FORMAT, "log", {"log": b'- epoch: 0\n  loss: 2.5\n- a: "b\n  c\n'})
    assert followed.end() == {"loss": [("0", 2.5)]}


@pytest.mark.parametrize(
    "text",
    [
        b"- &a {epoch: 1, loss: 1}\n- *a\n",
        b"- " * 1000 + b"a: 1\n",
        b"- a: " + b"[" * 100_000 + b"\n",
        b"",
    ],
)
def test_hostile_files_are_refused(text: bytes) -> None:
    with pytest.raises(DocumentError):
        decode(text, is_cut=True)


@given(st.text(alphabet='-: \n&*a1"[]{},?|>!'))
def test_any_text_is_decoded_or_refused(text: str) -> None:
    for is_cut in (False, True):
        with suppress(DocumentError):
            decode(text.encode(), is_cut)


def test_settings_are_not_looked_at() -> None:
    assert recognized(FORMAT, {"args.yaml": b"lr: 0.1\nbetas: [0.9, 0.99]\n"}) == []
