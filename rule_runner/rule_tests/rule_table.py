"""RuleTable: the cases of a test file, in YAML or Python."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from rule_core.modes import ModeKeys
from rule_runner.config.documents import Document, KeyPath, TextError, read_text, yaml_document
from rule_runner.config.job_file.python_file import run_file
from rule_runner.errors import ClientError, JobError, translated
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
                raise ClientError(
                    f"No test file below {text!r}. Test files end in {', '.join(SUFFIXES)}."
                )
            tables |= dict.fromkeys(below)
        elif path.exists():
            tables[path] = None
        else:
            raise ClientError(f"Test file {text!r} does not exist.")
    return [*tables]


def read_table(path: Path) -> RuleTable:
    """Read a test file.

    Raises
    ------
    TableError
        If it cannot be read, or none of its cases can.
    """
    document, text = _content(path)
    reader = _TableReader(path, document)
    return RuleTable(path, reader.cases(), document, text)


def _content(path: Path) -> tuple[Document, str]:
    """Return what a test file holds, and its text; "" for Python.

    The table of a Python file is its constants with the names of the keys, in capitals.
    """
    try:
        with translated(TableError, JobError):
            if path.suffix == ".py":
                module = run_file(path, "Test file")
                names = {key: key.upper() for key in FILE_KEYS if key.upper() in module}
                return Document({key: module[name] for key, name in names.items()}), ""
            text = read_text(path, "Test file")
            return yaml_document(text), text
    except TextError as err:
        line = f":{err.line}" if err.line else ""
        raise TableError(f"{path}{line}: {err.problem.rstrip('.')}.") from err


@dataclass(frozen=True, slots=True)
class _TableReader:
    """Reads the cases of a test file."""

    path: Path
    document: Document

    def cases(self) -> list[RuleCase | str]:
        """Return the cases; a text says why one cannot be used."""
        if self.document.value is None:
            self._fail("the file is empty")
        table = self._fields(
            self.document.value, FILE_KEYS, "A test file is a mapping with 'rule' and 'cases'"
        )
        cases = table.get("cases")
        if not isinstance(cases, list | tuple) or not cases:
            self._fail("'cases' must be a list of cases", "cases")
        return [self._case_or_problem(table, number) for number in range(len(cases))]

    def _fail(self, sentence: object, *place: str | int) -> NoReturn:
        """Raise an error of a sentence and a place."""
        text = str(sentence)
        end = "" if text.endswith((".", "?")) else "."
        raise TableError(f"{_where(self.path, self.document, place)}: {text}{end}")

    def _case_or_problem(self, table: Mapping[str, Any], number: int) -> "RuleCase | str":
        try:
            try:
                return self._case(table, number)
            except ExpectationError as err:
                self._fail(err, "cases", number, "expect", err.key)
            except CaseError as err:
                self._fail(err, "cases", number, "npz")
        except TableError as err:
            return str(err)

    def _case(self, table: Mapping[str, Any], number: int) -> RuleCase:
        place: KeyPath = ("cases", number)
        form = "A case is a mapping with 'name', values and 'expect'"
        fields = self._fields(table["cases"][number], CASE_KEYS, form, *place)
        rule = fields.get("rule", table.get("rule"))
        if not isinstance(rule, str) or not rule:
            self._fail("Name the rule: 'rule: NAME' or 'rule: FILE.py::NAME'", *place)
        texts: dict[str, str] = {}
        patterns: dict[str, list[str]] = {}
        for source, above in ((table, ()), (fields, place)):
            texts |= self._texts(source, above)
            patterns |= self._patterns(source, above)
        saved = SavedCase()
        if "npz" in fields:
            saved.add(load_npz(self.path.parent / str(fields["npz"])))
        self._add_workers(saved, fields, place)
        if not saved.steps:
            self._fail("A case needs values: 'losses', 'tensors' or 'npz'", *place)
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

    def _fields(
        self, value: Any, keys: tuple[str, ...], form: str, *place: str | int
    ) -> Mapping[str, Any]:
        """Return a mapping with some of `keys`; the sentence `form` describes it."""
        if not isinstance(value, Mapping):
            self._fail(form, *place)
        for key in value:
            try:
                checked_key(key, keys, form.partition(" is ")[0])
            except ExpectationError as err:
                self._fail(err, *place, key)
        return value

    def _mapping(self, fields: Mapping[str, Any], key: str, place: KeyPath) -> Mapping[str, Any]:
        value = fields.get(key, {})
        if not isinstance(value, Mapping):
            self._fail(f"{key!r} must be a mapping, got {value!r}", *place, key)
        return value

    def _texts(self, fields: Mapping[str, Any], place: KeyPath) -> dict[str, str]:
        values = self._mapping(fields, "parameters", place)
        for name, value in values.items():
            if not isinstance(value, str | int | float):
                sentence = f"Parameter {name!r} must be text or a number, got {value!r}"
                self._fail(sentence, *place, "parameters", name)
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
                inner = (*place, "workers", worker)
                form = "A worker is a mapping with 'losses' or 'tensors'"
                values = self._fields(data, DATA_KEYS, form, *inner)
                self._add_modes(saved, str(worker), own | dict(values), inner)
            return
        try:
            (count,) = whole_numbers(workers)
        except ValueError:
            sentence = f"'workers' must be a number or a mapping of workers, got {workers!r}"
            self._fail(sentence, *place, "workers")
        for number in range(count):
            self._add_modes(saved, f"worker_{number}", own, place)

    def _add_modes(
        self, saved: SavedCase, worker: str, data: Mapping[str, Any], place: KeyPath
    ) -> None:
        for mode, values in self._mapping(data, "modes", place).items():
            inner = (*place, "modes", mode)
            form = "A mode is a mapping with 'losses' or 'tensors'"
            fields = self._fields(values, ("losses", "tensors", "steps"), form, *inner)
            self._add_values(saved, worker, {**fields, "mode": mode}, inner)
        if "losses" in data or "tensors" in data:
            self._add_values(saved, worker, data, place)

    def _add_values(
        self, saved: SavedCase, worker: str, data: Mapping[str, Any], place: KeyPath
    ) -> None:
        mode = str(data.get("mode", ModeKeys.TRAIN.name))
        if mode not in ModeKeys.__members__:
            names = ", ".join(ModeKeys.__members__)
            self._fail(f"A mode is one of {names}, got {mode!r}", *place, "mode")
        steps = None
        if "steps" in data:
            with self._series_errors("steps", *place, "steps"):
                steps = whole_numbers(data["steps"])
        for key, name, values in self._series(data, place):
            numbers = range(len(values)) if steps is None else steps
            if len(values) > len(numbers):
                sentence = f"{name!r} has {len(values)} values for {len(numbers)} steps"
                self._fail(sentence, *place, key, name)
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
                with self._series_errors(name, *place, key, name):
                    values = series(value)
                yield key, str(name), values

    @contextmanager
    def _series_errors(self, name: str, *place: str | int) -> Iterator[None]:
        """Turn an error of a series into one of its place."""
        try:
            yield
        except SeriesError as err:
            self._fail(f"{name!r}: {err}", *place)
