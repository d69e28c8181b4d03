"""Reader of histories in JSON: lists of objects, objects of lists, and one object a file."""

import json
import re
from typing import Final

from rule_core.sources.documents.document_source import IncompleteDocumentError
from rule_core.sources.documents.history_format import HistoryFormat
from rule_core.sources.format import SourceFolder
from rule_core.sources.rows.json_lines import decoded

_NAMES: Final = r".*\.(json|txt|log|history)|[^.]+"  # Chainer calls its history "log"
_STATE: Final = "trainer_state.json"
_START: Final = re.compile(r"\s*[\[{]")
_ITEM: Final = re.compile(r"[^\s,]")
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*("?)|[\[\]{},]', re.DOTALL)
_CLOSING: Final = {"[": "]", "{": "}"}


def decode(data: bytes, is_cut: bool = False) -> object:
    """Return a document, or the list of the objects that follow each other.

    >>> decode(b'[{"a": 1}, {"a": 2, "b"', True), decode(b'{"a": 1} {"a": 2}')
    ([{'a': 1}, {'a': 2}], [{'a': 1}, {'a': 2}])

    Raises
    ------
    IncompleteDocumentError
        If it is not JSON.
    """
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    document = decoded(text)
    if document is None:
        document = _objects(text, is_cut) or (decoded(_closed(text)) if is_cut else None)
    if document is None:
        msg = f"it is not complete JSON ({len(data)} bytes)"
        raise IncompleteDocumentError(msg)
    return document


def _objects(text: str, is_cut: bool) -> list[object]:
    """Return the objects that follow each other; [] if there is anything else."""
    decoder, items, end = json.JSONDecoder(), [], 0
    try:
        while start := _ITEM.search(text, end):
            item, end = decoder.raw_decode(text, start.start())
            items.append(item)
    except (ValueError, RecursionError):
        items = items if is_cut else []
    return items if all(isinstance(item, dict) for item in items) else []


def _closed(text: str) -> str:
    """Return the complete elements at the start of a JSON text, with the brackets that lack."""
    brackets: list[str] = []
    end = 0
    for token in _TOKEN.finditer(text):
        char = token[0][0]
        if char == '"':
            if token[1]:
                continue
            break
        if char in _CLOSING:
            brackets.append(_CLOSING[char])
        elif char != "," and (not brackets or brackets.pop() != char):
            break
        end = token.end() - (char == ",")
    return text[:end] + "".join(reversed(brackets))


def _look(folder: SourceFolder, name: str) -> object:
    text = folder.head_text(name)
    first, _, others = text.strip().partition("\n")
    are_lines = bool(others) and isinstance(decoded(first), dict)  # which are another format
    if name == _STATE or are_lines or not _START.match(text):
        return None
    return decode(text.encode(), is_cut=True)


FORMAT: Final = HistoryFormat("json", _NAMES, decode, _look)
