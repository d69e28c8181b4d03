"""document_rows: the rows of a history in a document, such as JSON, YAML or arrays by name.

A history is a list of objects (records), an object of objects by epoch, an object of lists
(columns), or an object of lists of steps and values (series). It may stand below other keys.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from rule_core.modes import ModeKeys
from rule_core.sources.documents.document_source import DocumentError, Row
from rule_core.sources.names import NAMES, with_training_set
from rule_core.sources.rows.json_lines import MAX_DEPTH, MAX_NAME, flattened
from rule_core.sources.rows.row_fields import MODE, field_role, is_counter, mode_prefix, to_number
from rule_core.sources.rows.row_steps import counter_rank
from rule_core.storage.size_limit import check_file_size

NO_HISTORY: Final = (
    "it holds no history, only single values, settings, or lists without a known loss or metric; "
    "a log of the training may have one"
)
SAMPLES: Final = "its rows are samples or results: no loss, metric and step recognised"
_LOOKED_AT: Final = 1000  # rows, to decide whether they are those of a training
_DEPTH: Final = 4  # of objects that hold a history
_FIELD_BYTES: Final = 64  # of memory, for each field of a row
_TEXT: Final = 200  # characters of a value
_ONE_COUNT: Final = 3  # so many rows of one count are no rows of a training
_BY_COUNTER: Final = re.compile(r"(?:([A-Za-z][A-Za-z_ -]*?)[ _-]?)?(\d{1,12})")
# The columns of tables with one value a row, and lists beside those of steps.
_NAMES: Final = frozenset({"metricname", "metric_name", "metric", "name", "key", "tag"})
_VALUES: Final = frozenset({"metricvalue", "metric_value", "values", "value", "y"})
# What says that each row is a run, a sample, a class or a threshold.
_KEYS: Final = re.compile(
    r"(?i)(?:.*/)?(?:(?:image_|trial_|run_)?id|idx|uid|fold|seed|trial|run|labels?|class|y_true|"
    r"y_pred|target|prediction|thresholds?)"
)
_TRAINING: Final = re.compile(r"(?i)train|reward")
_TIME_OF_DAY: Final = re.compile(r"[\d:., /+TZ-]*(?:[AP]M)?|.*\bdays?\b.*")


def history(document: object) -> list[Row]:
    """Return the rows of the largest history in a document; names of nested fields have slashes.

    Raises
    ------
    DocumentError
        If there is none, with what it seems to be.
    """
    rows: list[Row] = max(_histories(document), key=lambda rows: sum(map(len, rows)), default=[])
    if not rows:
        raise DocumentError(SAMPLES if isinstance(document, list) else NO_HISTORY)
    return rows


def row_of(document: object, counter: str, count: int) -> list[Row]:
    """Return the row that a document is, if it is one of a series of files; see `history`."""
    rows = [_counted(_row(document), counter, count)] if isinstance(document, dict) else []
    if not _is_training(rows):
        raise DocumentError(NO_HISTORY)
    return rows


def _histories(item: object, depth: int = 1) -> Iterator[list[Row]]:
    """Yield what may be the history in a document, the outer ones first."""
    if isinstance(item, list):
        yield from filter(_is_training, [_records(item)])
    elif isinstance(item, dict):
        yield from filter(_is_training, (_by_counter(item), _by_set(item), _series(item)))
        for inner in item.values() if depth < _DEPTH else ():
            yield from _histories(inner, depth + 1)


# -- records -------------------------------------------------------------------------------------


def _records(items: Sequence[object]) -> list[Row]:
    """Return the rows of a list of objects; those of a table with one value a row are joined."""
    rows = [_row(item) for item in items if isinstance(item, dict)]
    if not rows or len(rows) < len(items):
        return []
    names = [name for name, _ in rows[0]]
    name_column = next((name for name in names if name.lower() in _NAMES), None)
    value_column = next((name for name in names if name.lower() in _VALUES), None)
    if name_column is None or value_column is None:
        return rows
    groups = []
    for row in rows:
        fields = dict(row)
        mode = next((mode_prefix(x) for name, x in row if field_role(name) == MODE), "")
        counts = [field for field in row if is_counter(field[0])]
        groups.append([(*counts, (f"{mode}{fields.get(name_column)}", fields.get(value_column)))])
    return _merged(groups)


def _by_counter(item: Mapping[str, object]) -> list[Row]:
    """Return the rows of objects whose keys are the values of a counter, such as ``epoch_1``."""
    matches = {key: _BY_COUNTER.fullmatch(key) for key in item}
    words = {match[1] for match in matches.values() if match}
    word = words.pop() if len(words) == 1 else "none"
    rows = [
        (int(match[2]), _row(x))
        for key, match in matches.items()
        if match and isinstance(x := item[key], dict)
    ]
    names = {name for _, row in rows for name, _ in row}
    is_sure = is_counter(word) if word else any(map(_says_training, names))
    if len(rows) < len(item) or not is_sure:
        return []
    return [_counted(row, word or "step", count) for count, row in sorted(rows)]


def _by_set(item: Mapping[str, object]) -> list[Row]:
    """Return the rows of lists of objects by the name of their set, such as train and val."""
    sets = {key: _records(value) for key, value in item.items() if isinstance(value, list)}
    groups = [
        [tuple((x if is_counter(x) else f"{key}/{x}", value) for x, value in row) for row in rows]
        for key, rows in sets.items()
        if _is_training(rows)
    ]
    return _merged(groups) if len(groups) > 1 else []


def _row(item: Mapping[str, object]) -> Row:
    """Return the numbers and short texts of an object; a list of one number is a number."""
    fields = (
        (name, value[0] if isinstance(value, list) and len(value) == 1 else value)
        for name, value in flattened(item)
    )
    return tuple(field for field in fields if field[1] is not None and _is_plain(field[1]))


def _counted(row: Row, counter: str, count: int) -> Row:
    """Return a row with a counter, unless it has one."""
    return row if any(is_counter(name) for name, _ in row) else ((counter, count), *row)


# -- columns and series --------------------------------------------------------------------------


def _series(item: Mapping[str, object]) -> list[Row]:
    """Return the rows of the lists below an object.

    Lists count together if they stand in one object, or if the outer one has a counter of their
    length. If there is no counter, the position in each list is the step.
    """
    lists: dict[tuple[str, int], dict[str, Sequence[Any]]] = {}  # by parent and length
    groups: dict[object, dict[str, Sequence[Any]]] = {}
    for name, value in _leaves(item):
        if isinstance(value, dict):
            groups[name] = {"step" if x == "x" else x: inner for x, inner in value.items()}
        else:
            lists.setdefault((name.rpartition("/")[0], len(value)), {})[name] = value
    for (_, length), alike in lists.items():
        counters = _counters(alike) or _counters(lists.get(("", length), {}))
        names = [x for x in alike if length and not is_counter(_leaf(x))]
        if any(NAMES(name).collection for name in names):
            group = groups.setdefault(tuple(map(id, counters.values())), counters)
            group.update((x, alike[x]) for x in names if all(map(_is_plain, alike[x])))
    if len(groups) > 1 or not any(map(_says_training, groups.get((), ()))):
        groups.pop((), None)
    rows = _merged([_rows_of(group) for group in groups.values()])
    new = with_training_set({x for group in groups.values() for x in group if not is_counter(x)})
    return [tuple((new.get(name, name), value) for name, value in row) for row in rows]


def _leaves(
    item: Mapping[str, object], prefix: str = "", depth: int = 1
) -> Iterator[tuple[str, Any]]:
    """Yield the lists below an object; lists of steps and values, as an object of both."""
    for key, value in item.items():
        name = prefix + key
        if len(name) > MAX_NAME or name[:1] == ":":  # what ClearML measures of the machine
            continue
        if isinstance(value, list):
            yield name, value
        elif isinstance(value, dict) and depth < MAX_DEPTH:
            lists = {inner: x for inner, x in value.items() if isinstance(x, list)}
            steps = [inner for inner in lists if is_counter(inner) or inner == "x"]
            values = [inner for inner in lists if inner.lower() in _VALUES]
            if len(steps) == len(values) == 1:
                yield name, {steps[0]: lists[steps[0]], name: lists[values[0]]}
            else:
                yield from _leaves(value, f"{name}/", depth + 1)


def _leaf(name: str) -> str:
    return name.rpartition("/")[2]


def _counters(lists: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """Return the counters among lists of one object, by their own names."""
    return {_leaf(name): values for name, values in lists.items() if is_counter(_leaf(name))}


def _rows_of(group: Mapping[str, Sequence[Any]]) -> list[Row]:
    """Return the rows of lists that count together."""
    counts = [len(values) for name, values in group.items() if is_counter(name)]
    length = min(counts, default=max(map(len, group.values())))
    if not counts:
        group = {"step": range(length), **group}
    check_file_size("content", length * len(group) * _FIELD_BYTES)
    return [
        tuple((name, values[n]) for name, values in group.items() if n < len(values))
        for n in range(length)
    ]


def _merged(groups: Sequence[list[Row]]) -> list[Row]:
    """Return the rows of several groups along one axis; rows with equal counters are one."""
    if len(groups) == 1:
        return groups[0]
    rows: dict[Row, dict[str, object]] = {}
    for row in chain.from_iterable(groups):
        counts = tuple(field for field in row if is_counter(field[0]))
        rows.setdefault(counts, {}).update(row)
    return [tuple(rows[counts].items()) for counts in sorted(rows, key=_position)]


def _position(counts: Row) -> float:
    """Return where a row stands among others, by its preferred counter."""
    _, value = min(counts, key=lambda field: counter_rank(field[0]), default=("", None))
    count = to_number(value)
    return float("inf") if count is None else count


# -- what is a training --------------------------------------------------------------------------


def _is_training(rows: Sequence[Row]) -> bool:
    """Return whether rows are those of a training, as far as their names and values say it."""
    values: dict[str, list[object]] = {}
    for name, value in chain.from_iterable(rows[:_LOOKED_AT]):
        values.setdefault(name, []).append(value)
    counters = {name for name in values if is_counter(name)}
    metrics = values.keys() - counters
    numbers = [x for x in metrics if any(to_number(value) is not None for value in values[x])]
    is_sure = any(map(_says_training, numbers))
    counter = min(counters, key=counter_rank, default="")
    counts = [to_number(value) or 0.0 for value in values.get(counter, ())]
    if not numbers or (len(counts) >= _ONE_COUNT and len({*counts}) == 1):
        return False
    if counts and is_sure:
        return True
    texts = (name for name in values if field_role(name) is None)
    has_keys = any(_KEYS.fullmatch(name) or _is_key(values[name]) for name in texts)
    grows = bool(counts) and counts == sorted(counts)
    return not has_keys and len(rows) > 1 and (is_sure or grows)


def _says_training(name: str) -> bool:
    meaning = NAMES(name)
    is_evaluation = meaning.mode is ModeKeys.EVAL and bool(meaning.collection)
    return is_evaluation or meaning.collection == "losses" or bool(_TRAINING.search(name))


def _is_key(values: Sequence[object]) -> bool:
    """Return whether a column has another text in each row, such as those of a data set."""
    texts = {x for x in values if isinstance(x, str) and to_number(x) is None}
    return 1 < len(texts) == len(values) and not all(map(_TIME_OF_DAY.fullmatch, texts))


def _is_plain(value: object) -> bool:
    """Return whether a value may be that of a field."""
    if isinstance(value, str):
        return len(value) <= _TEXT
    return value is None or type(value) in {int, float}
