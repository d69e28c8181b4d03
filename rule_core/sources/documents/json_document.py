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
    content = data.decode("utf-8", "replace").removeprefix("\ufeff")
    document = decoded(content)
    if document is None:
        document = _objects(content, is_cut) or (decoded(_closed(content)) if is_cut else None)
    if document is None:
        raise IncompleteDocumentError(f"it is not complete JSON ({len(data)} bytes)")
    return document


def _objects(content: str, is_cut: bool) -> list[object]:
    """Return the objects that follow each other; [] if there is anything else."""
    decoder, items, end = json.JSONDecoder(), [], 0
    try:
        while start := _ITEM.search(content, end):
            item, end = decoder.raw_decode(content, start.start())
            items.append(item)
    except (ValueError, RecursionError):
        items = items if is_cut else []
    return items if all(isinstance(item, dict) for item in items) else []


def _closed(content: str) -> str:
    """Return the complete elements at the start of a JSON text, with the brackets that lack."""
    brackets: list[str] = []
    end = 0
    for token in _TOKEN.finditer(content):
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
    return content[:end] + "".join(reversed(brackets))


def _look(folder: SourceFolder, name: str) -> object:
    content = folder.head_text(name)
    first, _, following = content.strip().partition("\n")
    are_lines = bool(following) and isinstance(decoded(first), dict)  # which are another format
    if name == _STATE or are_lines or not _START.match(content):
        return None
    return decode(content.encode(), is_cut=True)


FORMAT: Final = HistoryFormat("json", _NAMES, decode, _look)
