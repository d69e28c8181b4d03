"""RuleTable: the cases of a test file, in YAML or Python."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rule_core.modes import ModeKeys
from rule_runner.config.documents import (
    Document,
    KeyPath,
    TextError,
    read_text,
    yaml_document,
)
from rule_runner.config.job_file.python_file import run_file
from rule_runner.errors import ClientError, JobError
from rule_runner.rule_tests.expectation import (
    Expectation,
    ExpectationError,
    checked_key,
    parse_expectation,
)
from rule_runner.rule_tests.saved_case import CaseError, SavedCase, load_npz
from rule_runner.rule_tests.series import SeriesError, series, whole_numbers

SUFFIXES: Final = (".rules.yaml", ".rules.yml", ".rules.py")
FILE_KEYS: Final = ("rule", "parameters", "collections", "cases")
DATA_KEYS: Final = ("losses", "tensors", "steps", "mode", "modes")
CASE_KEYS: Final = (
    *("name", "rule", "parameters", "collections", "expect"),
    *(*DATA_KEYS, "workers", "npz"),
)
_WORKER: Final = "worker_0"
_LOSSES: Final = "losses"


class TableError(ClientError):
    """A test file, or one of its cases, cannot be used."""


@dataclass(frozen=True, slots=True)
class RuleCase:
    """One case of a test file.

    Attributes
    ----------
    rule
        As in the file: a name, or ``FILE::NAME`` relative to the folder of the test file.
    expectation
        None if the case has none yet.
    collections
        Patterns by name of the collection.
    place
        Its path in the file.
    """

    name: str
    rule: str
    parameters: Mapping[str, str]
    collections: Mapping[str, list[str]]
    saved: SavedCase
    expectation: Expectation | None
    place: KeyPath


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The cases of a test file.

    Attributes
    ----------
    cases
        In order; a text stands for a case that cannot be used, and says why.
    text
        The file's text; "" for Python.
    """

    path: Path
    cases: Sequence[RuleCase | str]
    document: Document
    text: str

    def where(self, *place: str | int) -> str:
        """Return the file and the line of a value, or of the nearest value around it."""
        return _where(self.path, self.document, place)


def _where(path: Path, document: Document, place: KeyPath) -> str:
    line = document.line(place)
    return f"{path}:{line}" if line else str(path)


def find_tables(paths: Sequence[str]) -> list[Path]:
    """Return the test files at and below some paths; a file that is named may have any name.

    Raises
    ------
    ClientError
        If a path does not exist, or holds no test file.
    """
    tables: dict[Path, None] = {}
    for text in paths:
        path = Path(text)
        if path.is_dir():
            below = sorted(
                file for suffix in SUFFIXES for file in path.rglob(f"*{suffix}") if file.is_file()
            )
            if not below:
                msg = f"No test file below {text!r}. Test files end in {', '.join(SUFFIXES)}."
                raise ClientError(msg)
            tables |= dict.fromkeys(below)
        elif path.exists():
            tables[path] = None
        else:
            msg = f"Test file {text!r} does not exist."
            raise ClientError(msg)
    return [*tables]


def read_table(path: Path) -> RuleTable:
    """Read a test file.

    Raises
    ------
    TableError
        If it cannot be read, or none of its cases can.
    """
    if path.suffix == ".py":
        document, text = Document(_python_value(path)), ""
    else:
        document, text = _yaml_document(path)
    table = document.value

    def fail(sentence: object, *place: str | int) -> TableError:
        text = str(sentence)
        end = "" if text.endswith((".", "?")) else "."
        return TableError(f"{_where(path, document, place)}: {text}{end}")

    if table is None:
        msg = "the file is empty"
        raise fail(msg)
    if not isinstance(table, Mapping):
        msg = "A test file is a mapping with 'rule' and 'cases'"
        raise fail(msg)
    try:
        for key in table:
            checked_key(key, FILE_KEYS, "A test file")
    except ExpectationError as err:
        raise fail(err, err.key) from err
    cases = table.get("cases")
    if not isinstance(cases, list | tuple) or not cases:
        msg = "'cases' must be a list of cases"
        raise fail(msg, "cases")
    reader = _CaseReader(path, table, fail)
    return RuleTable(path, [*map(reader.read, range(len(cases)))], document, text)


def _yaml_document(path: Path) -> tuple[Document, str]:
    try:
        text = read_text(path, "Test file")
        return yaml_document(text), text
    except JobError as err:
        raise TableError(str(err)) from err
    except TextError as err:
        line = f":{err.line}" if err.line else ""
        msg = f"{path}{line}: {err.problem.rstrip('.')}."
        raise TableError(msg) from err


def _python_value(path: Path) -> dict[str, Any]:
    """Return the table of a module: its constants with the names of the keys, in capitals."""
    try:
        module = run_file(path, "Test file")
    except JobError as err:
        raise TableError(str(err)) from err
    return {key: module[key.upper()] for key in FILE_KEYS if key.upper() in module}


@dataclass(frozen=True, slots=True)
class _CaseReader:
    """Reads the cases of a table.

    Attributes
    ----------
    fail
        Makes an error of a sentence and a place.
    """

    path: Path
    table: Mapping[str, Any]
    fail: Callable[..., TableError]

    def read(self, number: int) -> "RuleCase | str":
        """Return a case, or why it cannot be used."""
        try:
            return self._read(number)
        except TableError as err:
            return str(err)
        except ExpectationError as err:
            return str(self.fail(err, "cases", number, "expect", err.key))
        except CaseError as err:
            return str(self.fail(err, "cases", number, "npz"))

    def _read(self, number: int) -> RuleCase:
        place: KeyPath = ("cases", number)
        fields = self.table["cases"][number]
        if not isinstance(fields, Mapping):
            msg = "A case is a mapping with 'name', values and 'expect'"
            raise self.fail(msg, *place)
        self._check_keys(fields, CASE_KEYS, "A case", place)
        rule = fields.get("rule", self.table.get("rule"))
        if not isinstance(rule, str) or not rule:
            msg = "Name the rule: 'rule: NAME' or 'rule: FILE.py::NAME'"
            raise self.fail(msg, *place)
        texts: dict[str, str] = {}
        patterns: dict[str, list[str]] = {}
        for source, above in ((self.table, ()), (fields, place)):
            texts |= self._texts(source, above)
            patterns |= self._patterns(source, above)
        saved = SavedCase()
        if "npz" in fields:
            saved.add(load_npz(self.path.parent / str(fields["npz"])))
        self._add_workers(saved, fields, place)
        if not saved.steps:
            msg = "A case needs values: 'losses', 'tensors' or 'npz'"
            raise self.fail(msg, *place)
        expected = fields.get("expect")
        return RuleCase(
            str(fields.get("name", f"case {number + 1}")),
            rule,
            texts,
            patterns,
            saved,
            None if expected is None else parse_expectation(expected),
            place,
        )

    def _check_keys(
        self, fields: Mapping[str, Any], keys: tuple[str, ...], what: str, place: KeyPath
    ) -> None:
        for key in fields:
            try:
                checked_key(key, keys, what)
            except ExpectationError as err:
                raise self.fail(err, *place, key) from err

    def _mapping(self, fields: Mapping[str, Any], key: str, place: KeyPath) -> Mapping[str, Any]:
        value = fields.get(key, {})
        if isinstance(value, Mapping):
            return value
        msg = f"{key!r} must be a mapping, got {value!r}"
        raise self.fail(msg, *place, key)

    def _texts(self, fields: Mapping[str, Any], place: KeyPath) -> dict[str, str]:
        values = self._mapping(fields, "parameters", place)
        for name, value in values.items():
            if not isinstance(value, str | int | float):
                msg = f"Parameter {name!r} must be text or a number, got {value!r}"
                raise self.fail(msg, *place, "parameters", name)
        return {name: str(value) for name, value in values.items()}

    def _patterns(self, fields: Mapping[str, Any], place: KeyPath) -> dict[str, list[str]]:
        values = self._mapping(fields, "collections", place)
        return {
            name: [value] if isinstance(value, str) else [*map(str, value)]
            for name, value in values.items()
        }

    def _add_workers(self, saved: SavedCase, fields: Mapping[str, Any], place: KeyPath) -> None:
        """Add the values of a case: of one worker, of several alike, or of each by itself."""
        workers = fields.get("workers", "1")
        own = {key: fields[key] for key in DATA_KEYS if key in fields}
        if isinstance(workers, Mapping):
            for worker, data in workers.items():
                at = (*place, "workers", worker)
                if not isinstance(data, Mapping):
                    msg = "A worker is a mapping with 'losses' or 'tensors'"
                    raise self.fail(msg, *at)
                self._check_keys(data, DATA_KEYS, "A worker", at)
                self._add_modes(saved, str(worker), own | dict(data), at)
            return
        try:
            (count,) = whole_numbers(workers)
        except ValueError as err:
            msg = f"'workers' must be a number or a mapping of workers, got {workers!r}"
            raise self.fail(msg, *place, "workers") from err
        for number in range(count):
            self._add_modes(saved, f"worker_{number}" if number else _WORKER, own, place)

    def _add_modes(
        self, saved: SavedCase, worker: str, data: Mapping[str, Any], place: KeyPath
    ) -> None:
        modes = self._mapping(data, "modes", place)
        for mode, part in modes.items():
            at = (*place, "modes", mode)
            if not isinstance(part, Mapping):
                msg = "A mode is a mapping with 'losses' or 'tensors'"
                raise self.fail(msg, *at)
            self._check_keys(part, ("losses", "tensors", "steps"), "A mode", at)
            self._add_values(saved, worker, dict(part) | {"mode": mode}, at)
        if "losses" in data or "tensors" in data:
            self._add_values(saved, worker, data, place)

    def _add_values(
        self, saved: SavedCase, worker: str, data: Mapping[str, Any], place: KeyPath
    ) -> None:
        mode = str(data.get("mode", ModeKeys.TRAIN.name))
        if mode not in ModeKeys.__members__:
            msg = f"A mode is one of {', '.join(ModeKeys.__members__)}, got {mode!r}"
            raise self.fail(msg, *place, "mode")
        steps = None
        if "steps" in data:
            try:
                steps = whole_numbers(data["steps"])
            except SeriesError as err:
                msg = f"'steps': {err}"
                raise self.fail(msg, *place, "steps") from err
        for key, name, values in self._series(data, place):
            numbers = range(len(values)) if steps is None else steps
            if len(values) > len(numbers):
                msg = f"{name!r} has {len(values)} values for {len(numbers)} steps"
                raise self.fail(msg, *place, key, name)
            for step, value in zip(numbers, values, strict=False):
                if value is not None:
                    saved.at(worker, step, mode).records[name] = value
            if key == _LOSSES:
                saved.collections.setdefault(_LOSSES, set()).add(name)

    def _series(
        self, data: Mapping[str, Any], place: KeyPath
    ) -> Iterator[tuple[str, str, list[Any]]]:
        for key in ("losses", "tensors"):
            for name, value in self._mapping(data, key, place).items():
                try:
                    yield key, str(name), series(value)
                except SeriesError as err:
                    msg = f"{name!r}: {err}"
                    raise self.fail(msg, *place, key, name) from err
