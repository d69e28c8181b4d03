"""Reader of histories in YAML: a list of mappings. Scalars are texts, of which some are numbers."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import yaml

from rule_core.sources.documents.document_source import DocumentError, IncompleteDocumentError
from rule_core.sources.documents.history_format import HistoryFormat
from rule_core.sources.format import SourceFolder
from rule_core.sources.rows.json_lines import MAX_DEPTH, flattened

_ITEM: Final = re.compile(r"(?:(?:#.*|---.*| *)\n)*( *)- *[\w\"'{][^\n]*:")
_DOT: Final = re.compile(r"(?i)^([-+]?)\.(?=(?:nan|inf)$)")  # of numbers


def decode(data: bytes, is_cut: bool = False) -> object:
    """Return a document.

    Its last item may still be written if its names are not those of the item before it. It counts
    if `is_cut`.

    Raises
    ------
    DocumentError
        If it is not YAML, or contains aliases.
    """
    content = data.decode("utf-8", "replace")
    content = content[: content.rfind("\n") + 1]
    item = _ITEM.match(content)
    last = content.rfind(f"\n{item[1] if item else ''}-") + 1
    for end in filter(None, (len(content), last)):
        with suppress(yaml.YAMLError):
            events = yaml.parse(content[:end], Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            nodes = (event for event in events if isinstance(event, yaml.NodeEvent))
            document = _value(events, next(nodes, None), 1)
            if is_cut or not isinstance(document, list) or _is_settled(document):
                return document
            if document[1:]:
                return document[:-1]
    raise IncompleteDocumentError("it is not complete YAML")


def _value(events: Iterator[Any], event: object, depth: int) -> object:
    """Return what stands at an event: a text, a list or an object."""
    if isinstance(event, yaml.ScalarEvent):
        return _DOT.sub(r"\1", event.value)
    if depth > MAX_DEPTH or not isinstance(event, yaml.CollectionStartEvent):
        raise DocumentError("it is empty, nested too deeply, or contains aliases")
    values = []
    while not isinstance(inner := next(events), yaml.CollectionEndEvent):
        values.append(_value(events, inner, depth + 1))
    if isinstance(event, yaml.SequenceStartEvent):
        return values
    return dict(zip(map(str, values[::2]), values[1::2], strict=True))


def _is_settled(items: list[object]) -> bool:
    """Return whether the last two items have the same names."""
    names = [{name for name, _ in flattened(x)} if isinstance(x, dict) else x for x in items[-2:]]
    return len(names) > 1 and names[0] == names[1]


def _look(folder: SourceFolder, name: str) -> object:
    content = folder.head_text(name)
    return decode(content.encode(), is_cut=True) if _ITEM.match(content) else None


FORMAT: Final = HistoryFormat("yaml", r".*\.ya?ml", decode, _look, holds_back=True)
