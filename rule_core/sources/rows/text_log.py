"""Reader of text logs: free text in which lines with counters and numbers recur."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Final, NamedTuple

from rule_core.exceptions import SMDebugValueError
from rule_core.model.patterns import TIME_LIMIT_S, Pattern, compiled
from rule_core.reading.source_record import SourceRecord, is_step
from rule_core.sources.format import HEAD_BYTES, SourceFolder
from rule_core.sources.names import with_training_set
from rule_core.sources.options import DEFAULT, LogPattern, SourceOptions
from rule_core.sources.rows.drawn_table import DrawnTable, is_ruler
from rule_core.sources.rows.json_lines import json_head
from rule_core.sources.rows.line_fields import TRAINING, LineFields, Pair, line_fields, mode_words
from rule_core.sources.rows.line_reader import NewLines
from rule_core.sources.rows.line_source import LineFormat, LineSource
from rule_core.sources.rows.row_fields import brief, to_number, to_step
from rule_core.sources.rows.row_reader import RowReader
from rule_core.sources.rows.row_steps import (
    EPOCH,
    NO_COUNTER,
    UNNAMED,
    Count,
    counter_rank,
    to_count,
)
from rule_core.sources.text.compressed_file import plain_name
from rule_core.sources.text.decoder import TextDecoder
from rule_core.sources.text.number_lines import NOT_FINITE, lines_with_numbers
from rule_core.sources.text.terminal import plain_text

MAX_SEARCHED: Final = 1 << 16  # characters of a line
# Endings of source code, settings and what other formats read.
_NO_LOGS: Final = re.compile(
    r"(?i).*\.(py|pyi|pyx|ipynb|js|jsx|mjs|ts|tsx|css|scss|html?|svg|xml|ya?ml|toml|ini|cfg|conf|"
    r"properties|lock|c|h|cc|cpp|cxx|hpp|cu|cuh|java|kt|scala|go|rs|rb|php|pl|lua|r|jl|m|swift|cs|"
    r"sh|bash|zsh|bat|ps1|sql|tex|bib|rst|tsv|npz|npy|parquet|wandb|patch|diff|po|proto|"
    r"cmake|mk|gradle|prototxt|ckpt|pt|pth|bin|safetensors)"
)
_RECORDS: Final = re.compile(r"(?i).*\.(json|jsonl|ndjson|csv)")  # which collectors write too
_LIST: Final = re.compile(
    r"\s*(?P<name>[^\W\d][^:=\[]{0,60}?)\s*[:=]\s*\[(?P<numbers>[^\[\]]{8,})\]?\s*"
)
_EXPONENTS: Final = str.maketrans("fD", "ee", ",")  # of Julia and Fortran
_WRAPPED: Final = re.compile(r"\w+(?:\.\w+)*\(([^()]*)\)")
_FLOAT: Final = r"[-+\d.naife]+"
# Lines that name their numbers by their places or by abbreviations only.
_HINTS: Final = (
    LogPattern(
        "darknet",
        rf"^\s*(?P<step>\d+): (?P<loss>{_FLOAT}), (?P<avg_loss>{_FLOAT}) avg(?: loss)?, "
        rf"(?P<learning_rate>{_FLOAT}) rate",
    ),
    LogPattern(
        "yolo-results",
        rf"^\s*(?P<step>\d+)/\d+\s+[\d.]+G\s+(?P<box_loss>{_FLOAT})\s+(?P<obj_loss>{_FLOAT})\s+"
        rf"(?P<cls_loss>{_FLOAT})\s+(?P<loss>{_FLOAT})\s+\d+\s+\d+\s+(?P<precision>{_FLOAT})\s+"
        rf"(?P<recall>{_FLOAT})\s+(?P<mAP50>{_FLOAT})\s+(?P<mAP>{_FLOAT})\s+"
        rf"(?P<val_box_loss>{_FLOAT})\s+(?P<val_obj_loss>{_FLOAT})\s+(?P<val_cls_loss>{_FLOAT})",
    ),
    LogPattern(
        "llm.c",
        rf"^s:(?P<step>\d+) (?:tel:(?P<val_loss>{_FLOAT})|trl:(?P<train_loss>{_FLOAT})"
        rf"(?: lr:(?P<lr>{_FLOAT}))?(?: norm:(?P<grad_norm>{_FLOAT}))?)",
    ),
    LogPattern("pytorch-tutorials", rf"\) \((?P<step>\d+) \d+%\) (?P<loss>{_FLOAT})$"),
)
_HINTED: Final = re.compile(r"\s*\d+(?::|/\d+)\s+[-\d.n]|s:\d|.*\(\d+ \d+%\) ")
_LONG_HEAD: Final = 4 << 20  # bytes, since progress bars and settings may come first
_METRIC_WORDS: Final = re.compile(
    r"(?i)loss|acc|error|reward|return|perplexity|ppl|cost|objective|score"
)
_NUMBER: Final = re.compile(rf"\d|{NOT_FINITE}")
_HEADED: Final = 5  # lines that a heading without a name, or without numbers, may head
_LINES_OF_A_MODE: Final = 30  # with numbers that a heading such as "Testing" may head
_HEADING: Final = 60  # characters of a heading; a wider one names columns
_WIDEST: Final = 400  # characters of a line that names columns
_BAR: Final = re.compile(r".*?\d{1,3}%\|[^|]*\|[^\[\]]*\[[^\[\]]*\](?=[^\s\]])")
# A line of the summary of COCO, of which only the first row of precision and of recall is read.
_COCO: Final = re.compile(
    r"\s*Average \w+\s+\((\w+)\) @\[ IoU=(\S+)\s+\| area=\s*(\w+) \| maxDets=\s*(\d+) \] = (\S+)"
)
_COCO_ROW: Final = ("0.50:0.95", "all", "100")
_SHORT: Final = 3  # words of a line that belong to no number
_MOST_WORDS: Final = 8  # of a line, and a few for each number
_FEWEST_ROWS: Final = 3  # that prove a counter which has no known metric beside it
_DRAWN_ANEW: Final = -1  # no total of a bar
_FEWEST_NUMBERS: Final = 4  # of a printed list
_NO_EVALUATION: Final = frozenset(("", TRAINING))
_OPENING_LINES: Final = 1000  # before the first row, which are remembered
_TO_FORM: Final = str.maketrans("", "", "0123456789")


class _Matcher(NamedTuple):
    """A pattern that is ready for use."""

    name: str
    search: Pattern

    def read(self, content: str) -> dict[str, str]:
        """Return the groups of a line, "step" among them; nothing if it does not match.

        Raises
        ------
        TimeoutError
            If the search takes too long.
        """
        match = self.search.search(content, timeout=TIME_LIMIT_S)
        if match is None:
            return {}
        return {name: value for name, value in match.groupdict().items() if value is not None}


class TextLines:
    """Reads lines of free text, in the order written.

    A line that has a counter is a row; so are the lines after it that have none, of the same step.
    Tables and boxes that are drawn with characters are rows of their cells.

    Attributes
    ----------
    rows
        What gives the rows their steps.
    evidence
        How often which names occurred with a step that grew; those that are surely of a training
        count under ``()``. None: nobody asks.
    """

    def __init__(self, options: SourceOptions = DEFAULT) -> None:
        self.rows = RowReader(options)
        self.evidence: Counter[tuple[str, ...]] | None = None
        self._matchers = [*matchers(options.log_patterns)]
        self._context: tuple[Count, ...] = ()
        self._mode = ""
        self._mode_until = math.inf  # the number of the last line for which the mode holds
        self._table = DrawnTable()
        self._last = -1
        self._lines = 0
        self._valid_until = math.inf  # the number of the last line for which the context holds
        self._last_counts: Sequence[Count] = ()  # the counters of the latest row
        self._last_names: set[str] = set()  # of the numbers that these counters have
        self._counts_itself = False  # whether the latest line with a count has numbers
        self._total = 0  # of that count
        self._value = 0.0
        self._bar_total = 0  # of the first full bar of the epoch
        self._waiting: tuple[dict[str, float], tuple[Count, ...]] | None = None
        # Lines before the first row without digits: how often they opened runs less how often not.
        self._opening: dict[str, int] = {}
        self._recurring: set[str] = set()  # those of them that recurred
        self._opened: set[str] = set()  # those after which a count follows
        self.problems: list[str] = []

    def add_line(self, line: str, record: SourceRecord) -> None:
        """Read a line; `record` gets its numbers."""
        self._lines += 1
        for piece in plain_text(line[:MAX_SEARCHED]):
            for content in _split_at_bar(_of_coco(piece).rstrip()):
                if not self._add_matched(content, record) and not self._add_text(content, record):
                    self._note(content, record)

    def _add_matched(self, content: str, record: SourceRecord) -> bool:
        """Pass on the numbers that patterns find; return whether there are any."""
        hints = matchers(_HINTS) if _HINTED.match(content) else ()
        for matcher in (*self._matchers, *hints):
            try:
                groups = matcher.read(content)
            except TimeoutError:
                self._matchers = [other for other in self._matchers if other is not matcher]
                self.problems.append(
                    f"Pattern {matcher.name!r} takes more than {TIME_LIMIT_S} s, and is not "
                    "used for the rest of the file. Write it without nested repetitions."
                )
                continue
            if groups:
                self._add_groups(groups, record)
                return True
        return False

    def _add_groups(self, groups: dict[str, str], record: SourceRecord) -> None:
        """Pass on what the groups of a pattern matched."""
        step = to_step("step", groups.pop("step", ""))
        if isinstance(step, str):
            self.problems.append(step)
            return
        values: dict[str, float] = {}
        for name, content in groups.items():
            value = to_number(content)
            if value is None:
                problem = f"{name!r} is not a number: {brief(content)}. Such values are skipped."
                self.problems.append(problem)
            else:
                values[name] = value
        self._add_row(values, (Count("step", 0, step),), record)

    def _add_text(self, content: str, record: SourceRecord) -> bool:
        """Pass on the numbers of a line; return whether it counts, or is a row or a list."""
        row = self._table.read(content)
        if row:
            self._add_row_of_cells(row, record)
        if row is not None or self._add_list(content, record):
            return row != []
        if not _NUMBER.search(content):
            if len(content) < _HEADING:
                self._add_heading(LineFields(mode=next(mode_words(content), "")))
            return False
        fields = line_fields(content)
        if not fields.pairs:
            self._add_heading(fields)
            return bool(fields.counts)
        mode = self._mode_of(fields)
        is_prose = fields.words > _MOST_WORDS + 4 * len(fields.pairs)
        if not is_prose and not self._counts_something_else(fields):
            self._add_fields(fields, mode, record)
        elif not is_prose and all(count.rank == EPOCH for count in fields.counts):
            self._add_heading(fields)
        return bool(fields.counts)

    def opens(self, lines: Iterable[str]) -> bool:
        """Return whether lines come before the first row, or one of them recurs that did."""
        if self.rows.steps.last < 0:
            return len(self._opening) < _OPENING_LINES
        if not (self._opening and self.rows.steps.has_counter):
            return False
        forms = "\n".join(lines).translate(_TO_FORM).split("\n")
        return any(self._opening.get(form, -1) >= 0 for form in forms)

    def _note(self, content: str, record: SourceRecord) -> None:
        """Remember a line before the first row; if it recurs, a run may begin."""
        form = content[:_WIDEST].translate(_TO_FORM)
        if self._opening.get(form, -1) >= 0:
            self.end_row(record)  # which may show that the line opens no run
        if self.rows.steps.last < 0:
            if len(self._opening) < _OPENING_LINES:
                self._opening[form] = 0
        elif self.rows.steps.has_counter and self._opening.get(form, -1) >= 0:
            self._recurring.add(form)

    def _expect_row(self) -> None:
        """Let the next row begin a run if lines recurred, since a count follows."""
        self._opened |= self._recurring
        self._recurring.clear()

    def _pass_on(self, row: Callable[[], None], record: SourceRecord) -> None:
        """Pass on a row, and remember whether the lines that recurred before it opened a run."""
        self.rows.may_begin, segment = bool(self._opened), record.segment
        row()
        if self.rows.may_begin:
            self.rows.may_begin = False
            for form in self._opened:
                self._opening[form] += 1 if record.segment > segment else -1
            self._opened.clear()

    def end(self, record: SourceRecord) -> None:
        """Pass on what waits for later lines, since there are none."""
        self.end_row(record)
        self._add_row_of_cells(self._table.end(), record)

    # -- lines -------------------------------------------------------------------------------

    def _add_heading(self, fields: LineFields) -> None:
        """Remember what a line without numbers says of those that follow."""
        is_short = fields.words <= _SHORT
        counts = [
            count
            for count in fields.counts
            if count.rank == EPOCH or self._is_announced(count, is_bar=fields.is_tqdm)
        ]
        is_evaluation = fields.mode not in _NO_EVALUATION
        if is_evaluation and (is_short or fields.counts):
            counts = [count for count in counts if count.rank != UNNAMED]
        if fields.counts or (fields.mode and is_short):
            self._mode = fields.mode if is_short or is_evaluation else ""
            self._mode_until = self._lines + (math.inf if fields.counts else _LINES_OF_A_MODE)
        if counts:
            self._context = self._with_epoch(tuple(counts))
            self._last_names = set()
            self._bar_total = 0
            is_named = any(count.rank != UNNAMED for count in counts)
            if is_named:
                self._expect_row()
            self._valid_until = math.inf if is_named else self._lines + _HEADED

    def _is_announced(self, count: Count, *, is_bar: bool) -> bool:
        """Return whether a count in a heading is that of the rows below it.

        A bar without numbers counts nothing if an epoch was announced.
        """
        steps = self.rows.steps
        if not steps.has_counter:
            has_epoch = any(other.rank == EPOCH for other in self._context)
            return steps.last < 1 and not (is_bar and has_epoch)
        if not self._counts_itself:
            return count.name == steps.name
        is_same = count.name == steps.name and count.total == self._total
        return is_same and count.value >= self._value

    def _with_epoch(self, counts: tuple[Count, ...]) -> tuple[Count, ...]:
        """Return counts with the epoch that an earlier line has announced, if they lack it."""
        if any(count.rank == EPOCH for count in counts):
            return counts
        return counts + tuple(count for count in self._context if count.rank == EPOCH)

    def _add_fields(self, fields: LineFields, mode: str, record: SourceRecord) -> None:
        """Pass on the numbers of a line, or keep them if later lines may draw over it."""
        bar = next(
            (count for count in fields.counts if count.rank == UNNAMED and count.total), None
        )
        counts = fields.counts
        if bar is not None and mode in _NO_EVALUATION:
            mode = self._mode_of_bar(fields, bar) or mode
        is_test = mode not in _NO_EVALUATION
        if is_test and self._counts_its_batches(counts):
            counts = tuple(count for count in counts if count.rank == EPOCH)
        if bar is not None:
            if self._is_unfinished(fields, bar):
                return
            if is_test or (bar.value == bar.total and self._is_summary(counts)):
                counts = tuple(count for count in counts if count is not bar)
        counts = self._in_context(counts)
        values = self._values_of(fields, counts, mode)
        if self._precedes_training(values, counts, is_counted=bool(fields.counts)):
            return
        if is_test:
            counts = tuple(count for count in counts if count.name or count.rank == EPOCH)
        if not values:
            return
        is_bar = fields.is_tqdm or fields.is_bar
        if is_bar or (is_test and (bar or self._waits_for(fields))):
            self._wait(values, counts, record, is_bar=is_bar)
            return
        self.end_row(record)
        is_sure = bool(counts) and fields.words <= _SHORT + 2 * len(values)
        is_counted = bool(fields.counts)
        self._add_row(values, counts, record, is_sure=is_sure, is_counted=is_counted)

    def _precedes_training(
        self, values: Mapping[str, float], counts: Sequence[Count], *, is_counted: bool
    ) -> bool:
        """Return whether numbers are settings or source code, which come before the first row."""
        if self._recurring:
            counts = counts if is_counted else ()  # those of the run before
        elif self.rows.steps.last >= 0 or self._waiting:
            return False
        is_initial = not is_counted and not any(values.values())  # such as val_loss = 0.0
        return is_initial or not self._are_of_training(values, counts)

    def _counts_its_batches(self, counts: Sequence[Count]) -> bool:
        """Return whether counts end elsewhere than those of the training, as in an evaluation."""
        totals = {count.total for count in counts if count.rank != EPOCH and count.total}
        return bool(totals and self._total) and self._total not in totals

    def _mode_of(self, fields: LineFields) -> str:
        """Return the mode of a line, which may hold for those after it."""
        if fields.counts and (fields.mode or not self._counts_its_batches(fields.counts)):
            self._mode, self._mode_until = fields.mode, math.inf
        return fields.mode or (self._mode if self._lines <= self._mode_until else "")

    def _counts_something_else(self, fields: LineFields) -> bool:
        """Return whether a line counts features that are extracted or so, beside unknown names."""
        counts = fields.counts
        if not counts or self._has_meaning(pair.name for pair in fields.pairs):
            return False
        fractions = [pair.digits for pair in fields.pairs if "." in pair.digits]
        if not fields.words and len(fractions) > 1 and counts[0].rank == EPOCH:
            return False  # a line of nothing but an epoch and its numbers
        has_rows = self.rows.steps.last >= 0 and not self.rows.steps.has_counter
        return has_rows or all(count.rank in {UNNAMED, EPOCH} for count in counts)

    def _mode_of_bar(self, fields: LineFields, bar: Count) -> str:
        """Return the mode of a bar: an evaluation follows the first one of an epoch.

        It ends elsewhere, or is drawn anew after the first one was full.
        """
        if not fields.is_bar or not self._is_summary(fields.counts):
            return ""
        if bar.value < bar.total:
            self._bar_total = _DRAWN_ANEW if self._bar_total else 0
            return ""
        self._bar_total = self._bar_total or bar.total
        return "" if self._bar_total == bar.total else "eval"

    def _waits_for(self, fields: LineFields) -> bool:
        """Return whether a line sums up the evaluation whose row waits."""
        return self._waiting is not None and not fields.counts

    @staticmethod
    def _is_unfinished(fields: LineFields, bar: Count) -> bool:
        """Return whether a bar has nothing done yet, or shows a mean that is not final."""
        if fields.is_bar and bar.value < bar.total:
            return True
        return (fields.is_tqdm or fields.is_bar) and not bar.value

    def _in_context(self, counts: tuple[Count, ...]) -> tuple[Count, ...]:
        """Return the counters that hold for a line, which become those of the next ones."""
        if not counts:
            return self._context if self._lines <= self._valid_until else ()
        inner = [count for count in counts if count.rank != EPOCH]
        self._counts_itself = bool(inner)
        self._expect_row()
        if inner:
            self._total, self._value = inner[0].total, inner[0].value
        counts = self._with_epoch(counts)
        self._context = tuple(count for count in counts if is_step(count.value))
        self._valid_until = math.inf
        return counts

    def _values_of(
        self, fields: LineFields, counts: Sequence[Count], mode: str
    ) -> dict[str, float]:
        """Return the numbers of a line, by names that say their modes."""
        values: dict[str, float] = {}
        for pair in self._named(fields.pairs, mode):
            if not fields.counts and not self._is_row(pair, fields, counts):
                continue
            content = pair.average if pair.average and mode not in _NO_EVALUATION else pair.digits
            value = to_number(content.replace(",", ""))
            if value is None:
                value = to_number(content.translate(_EXPONENTS))
            if value is not None:
                values.setdefault(pair.name, value)
        if next(iter(values), "").startswith("validation_"):  # as XGBoost calls its sets
            new = with_training_set(values)
            values = {new.get(name, name): value for name, value in values.items()}
        return values

    def _wait(
        self,
        values: dict[str, float],
        counts: tuple[Count, ...],
        record: SourceRecord,
        *,
        is_bar: bool,
    ) -> None:
        """Keep a row that later lines draw over: the last one counts."""
        earlier = self._waiting[0] if self._waiting and _agree(self._waiting[1], counts) else {}
        is_less = not earlier.keys() <= values.keys() and not earlier.keys().isdisjoint(values)
        if earlier and not (is_bar and is_less):  # not another bar, such as that of evaluate()
            values = {**earlier, **values}
        else:
            self.end_row(record)
        self._waiting = values, counts

    def end_row(self, record: SourceRecord) -> None:
        """Pass on the row that was drawn over, since none follows that does."""
        if self._waiting:
            values, counts = self._waiting
            self._waiting = None
            self._add_row(values, counts, record)

    def _has_meaning(self, names: Iterable[str]) -> bool:
        """Return whether one of some names has a meaning, or names a set such as ``val``."""
        return any(self.rows.names(name).collection or any(mode_words(name)) for name in names)

    def _has_metric(self, names: Iterable[str]) -> bool:
        """Return whether one of some names is that of a loss or a metric."""
        return any(self.rows.names(name).is_metric for name in names)

    def has_loss(self, names: Iterable[str]) -> bool:
        """Return whether one of some names is that of a loss."""
        return any(self.rows.names(name).collection == "losses" for name in names)

    def _is_summary(self, counts: Sequence[Count]) -> bool:
        """Return whether a full bar sums up an epoch that an earlier line has announced."""
        is_announced = any(count.rank == EPOCH for count in self._context)
        return len(counts) == 1 and is_announced and self.rows.steps.rank > UNNAMED

    @staticmethod
    def _named(pairs: Sequence[Pair], mode: str) -> list[Pair]:
        """Return numbers with names that say their modes."""
        own = [next(mode_words(pair.name), "") for pair in pairs]
        if own[0] not in _NO_EVALUATION and not any(own[1:]) and " " in pairs[0].name:
            mode = own[0]  # val Loss: 0.5 Acc: 0.9
        modes = [pair.mode or mode for pair in pairs]
        return [
            pair
            if own_mode or pair_mode in _NO_EVALUATION
            else pair._replace(name=f"{pair_mode}/{pair.name}")
            for pair, own_mode, pair_mode in zip(pairs, own, modes, strict=True)
        ]

    def _is_row(self, pair: Pair, fields: LineFields, counts: Sequence[Count]) -> bool:
        """Return whether a number without a counter in its line belongs to the training."""
        if counts and self.rows.steps.last >= 0:
            is_short = fields.words <= _SHORT and any(x.rank != UNNAMED for x in counts)
            return is_short or self._has_meaning([pair.name])
        return self.rows.names(pair.name).is_metric

    def _add_row(
        self,
        values: Mapping[str, float],
        counts: Sequence[Count],
        record: SourceRecord,
        *,
        is_sure: bool = True,
        is_counted: bool = True,
    ) -> None:
        if not values:
            return
        names = tuple(values)
        if counts != self._last_counts:
            self._last_counts, self._last_names = counts, set()
        if is_counted:
            if self.rows.steps.is_bar_over and self._repeats(values):
                self.rows.steps.end_bar()
        else:
            if self._last_names.issuperset(names) and self._repeats(values):
                self.rows.steps.count_rows()
            self._last_names.update(names)
        self._pass_on(partial(self.rows.add, values, counts, record), record)
        step = self.rows.steps.last
        if self.evidence is None or (step == self._last and self.evidence):
            return
        has_fraction = not all(value.is_integer() for value in values.values())
        is_loss = is_sure and has_fraction and self.has_loss(names)
        has_name = any(count.rank not in {UNNAMED, EPOCH} for count in counts)
        is_named = has_name and self._has_metric(names)
        if is_loss or is_named or (has_fraction and self._are_of_training(names, counts)):
            self._last = step
            self.evidence[() if is_loss else names] += 1

    def _repeats(self, values: Mapping[str, float]) -> bool:
        """Return whether the latest step has other numbers of the same names."""
        is_repeated = self.rows.repeats(values) and self._has_metric(values)
        return is_repeated and not self.rows.only_evaluates(values)

    def _are_of_training(self, names: Iterable[str], counts: Sequence[Count]) -> bool:
        """Return whether numbers are those of a training, by a name or by what counts them."""
        if self._has_metric(names) or any(any(mode_words(name)) for name in names):
            return True
        is_counted = any(count.total or count.rank == EPOCH for count in counts)
        return is_counted and not all(self.rows.names(name).collection for name in names)

    # -- tables and lists --------------------------------------------------------------------

    def _add_row_of_cells(self, fields: Sequence[tuple[str, object]], record: SourceRecord) -> None:
        """Pass on a row of cells, the counters among them."""
        names = tuple(name for name, _ in fields)
        cells = (to_count(name, cell) for name, cell in fields if counter_rank(name) < NO_COUNTER)
        counts = tuple(count for count in cells if count is not None and is_step(count.value))
        ending = [count for count in counts if count.total]
        if not names or (self.rows.steps.last < 0 and not self._are_of_training(names, ending)):
            return
        has_counter = any(counter_rank(name) < NO_COUNTER for name in names)
        if has_counter:
            self._expect_row()
        row = partial(self.rows.add_fields, fields, record, context=self._in_context(counts))
        self._pass_on(row, record)
        if self.evidence is not None and self.rows.steps.last != self._last:
            self._last = self.rows.steps.last
            self.evidence[() if has_counter and self.has_loss(names) else names] += 1

    def _add_list(self, content: str, record: SourceRecord) -> bool:
        """Read a series that was printed as a list; return whether it is one."""
        match = _LIST.fullmatch(content) if "[" in content else None
        if match is None or not self.rows.names(match["name"]).is_metric:
            return False
        numbers = [to_number(_WRAPPED.sub(r"\1", part)) for part in match["numbers"].split(",")]
        series = [value for value in numbers if value is not None]
        if len(series) < max(_FEWEST_NUMBERS, len(numbers)):
            return False
        if self.rows.steps.last >= 0 or self._waiting:
            return True  # a summary
        for step, value in enumerate(series):
            record.point(match["name"], step, value)
        if self.evidence is not None:
            self.evidence[()] += 1
        return True


class TextLogSource(LineSource):
    """Reads one text log. See ``docs/sources/README.md`` for what it reads."""

    def begin(self) -> None:
        """Forget the lines before; see `LineSource`."""
        self._text = TextLines(self.options)
        self.rows = self._text.rows
        self._skipped: list[str] = []  # the latest lines without numbers

    def add_block(self, new: NewLines, record: SourceRecord) -> None:
        """Pass the numbers of lines on; only those that may have some are looked at."""
        if self.options.log_patterns:
            super().add_block(new, record)
            return
        for heading, line in self._lines_with_numbers(new.text):
            if self.delivered.is_new(line):
                for before in heading:
                    self._text.add_line(before, record)
                self._text.add_line(line, record)

    def _lines_with_numbers(self, block: str) -> Iterator[tuple[list[str], str]]:
        """Yield lines that may have numbers, and the few before each, which may head it."""
        done = 0
        for start, end in lines_with_numbers(block):
            headings = self._headings(block, done, start)
            self._skipped = []
            matter = _may_matter(headings) or self._text.opens(headings)
            yield headings if matter else [""] * len(headings), block[start:end]
            done = end + 1
        self._skipped = self._headings(block, done, len(block))

    def _headings(self, block: str, start: int, end: int) -> list[str]:
        """Return the last lines without numbers that may head those after them."""
        start = max(start, end - _HEADED * _WIDEST)
        lines = block[start:end].split("\n")[-_HEADED - 1 :] if start < end else ()
        new = [line for line in lines if 0 < len(line) < _HEADING or "  " in line or "\t" in line]
        return [*self._skipped, *new][-_HEADED:]

    def add_lines(self, lines: Iterator[str], first: int, record: SourceRecord) -> None:
        """Pass the numbers of lines on; see `LineSource`."""
        for line_number, line in enumerate(lines, first):
            if line and self.delivered.is_new(line):
                self._text.add_line(line, record)
                for problem in self._text.problems:
                    self.report_once(
                        record, problem.partition("'")[0], f"line {line_number}", problem
                    )
                self._text.problems.clear()

    def add_rest(self, record: SourceRecord) -> None:
        """Pass on a row that no later line draws over; see `LineSource`."""
        self._text.end(record)


def _agree(counts: Sequence[Count], waiting: Sequence[Count]) -> bool:
    """Return whether two rows are at the same counts, of which one may lack the total."""
    row, waiting_row = ([count[1:3] for count in of_row] for of_row in (counts, waiting))
    return row == waiting_row


def _may_matter(headings: Sequence[str]) -> bool:
    """Return whether some headings name a mode or columns, or are a ruler or drawn."""
    content = " ".join(headings)
    is_plain = content.isascii() and content.isprintable() and "  " not in content
    return not is_plain or any(mode_words(content)) or any(map(is_ruler, headings))


def what_counts(content: str, options: SourceOptions = DEFAULT) -> str:
    """Return what a text tells of a training, as the end of a sentence; "" for nothing."""
    lines = TextLines(options)
    evidence = lines.evidence = Counter()
    record = SourceRecord("", "", lines.rows.names, lambda _key, _problem: None)
    for line in content.split("\n"):
        lines.add_line(line, record)
        if () in evidence:
            break
    lines.end(record)
    steps = lines.rows.steps
    if () in evidence:
        return f"its lines count {steps.name or 'rows'}, with numbers beside the count"
    for names, rows in evidence.items():
        if rows >= _FEWEST_ROWS and (steps.has_counter or steps.name or lines.has_loss(names)):
            return f"numbers such as {names[0]!r} recur in its lines"
    return ""


def _reason(folder: SourceFolder, name: str) -> str:
    plain = plain_name(name)
    is_record = _RECORDS.fullmatch(plain)
    if name.endswith("/") or _NO_LOGS.fullmatch(plain):
        return ""
    content = folder.head_text(name)
    if is_record and content == TextDecoder().decode(folder.head(name)):
        return ""  # nothing was wrapped
    if "\0" in content or json_head(content):
        return ""
    reason = what_counts(content, folder.options)
    if not reason and len(folder.head(name)) == HEAD_BYTES:  # it begins with something else
        content = folder.head_text(name, _LONG_HEAD)
        if _METRIC_WORDS.search(content):
            reason = what_counts(content, folder.options)
    return reason


@lru_cache(maxsize=64)
def matchers(patterns: tuple[LogPattern, ...]) -> tuple[_Matcher, ...]:
    """Return patterns that are ready for use.

    Raises
    ------
    SMDebugValueError
        If one of them is not a regular expression, or has no group ``step``.
    """
    return tuple(_matcher(pattern) for pattern in patterns)


def _matcher(line: LogPattern) -> _Matcher:
    try:
        search = compiled(line.pattern)
    except re.error as err:
        raise SMDebugValueError(
            f"Log pattern {line.name!r} is not a regular expression: {err}."
        ) from err
    groups = search.groupindex.keys()
    if "step" not in groups:
        raise SMDebugValueError(
            f"Log pattern {line.name!r} needs a group of the step, such as (?P<step>[0-9]+)."
        )
    if len(groups) == 1:
        raise SMDebugValueError(
            f"Log pattern {line.name!r} needs a group of a number, such as (?P<loss>[0-9.]+)."
        )
    return _Matcher(line.name, search)


def _of_coco(content: str) -> str:
    """Return a line; of COCO's summary the name and the number, or nothing but for the first."""
    match = _COCO.match(content) if "IoU=" in content else None
    if match is None:
        return content
    return f"{match[1]}: {match[5]}" if match.group(2, 3, 4) == _COCO_ROW else ""


def _split_at_bar(content: str) -> tuple[str, ...]:
    """Return a line, or a progress bar and what was printed behind it."""
    bar = _BAR.match(content) if "%|" in content else None
    return (content[: bar.end()], content[bar.end() :]) if bar else (content,)


FORMAT: Final = LineFormat("text-log", _reason, TextLogSource)
