"""line_fields: the counters and the numbers in one line of free text."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from rule_core.model.segments import SEGMENT_STEPS
from rule_core.sources.rows.row_steps import (
    EPOCH,
    NO_COUNTER,
    UNNAMED,
    Count,
    counter_rank,
    rounded_number,
)

MAX_PAIRS: Final = 1000  # of a line
_MAX_NAME: Final = 80  # characters
_MAX_WORDS: Final = 6  # of a name
_LINE_CHARACTERS: Final = str.maketrans("：，；％（）＝【】│║┃", ":,;%()=[]|||")  # noqa: RUF001 - looked for

# What stands beside numbers of a training and is none of them: times, places in source code, the
# sizes and the percentages of progress bars, processes.
_NOISE: Final = re.compile(
    r"""
      ^[IWEFD]\d{4}\ [\d:.]+\s+\d+\ \S+:\d+\]               # glog
    | ^(?:INFO|DEBUG|WARNING):[\w.]+:                       # logging
    | \b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\ [A-Z][a-z]{2}\ +\d\d?(?:\ [\d:]{5,8})?(?:\ \d{4})?\b
    | \d{4}[-/.]\d\d?[-/.]\d\d?(?:[T_\s]\s*\d\d?:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?
    | \b\d\d?/\d\d?(?:/\d{4})?(?=\s\d\d:\d\d)
    | (?<![\w.])(?:\d+\ days?,\ )?\d+:\d\d(?::\d\d)?(?:[.,]\d+)?(?![\w.:])
    | (?<![\w.])\d+h\s?\d+m(?:\s?\d+s)? | (?<![\w.])\d+m\s?\d+s\b
    | \[[A-Za-z_]\w*(?:\.\w+)+:\d+(?:,\s*rank=\d+)?\]
    | \S+\.py:\d+:\ \w*Warning:.* | \bdevice='?\w+:\d+'?
    | [\w./-]+\.(?:py|cc|cpp|cu|h|java|rs|go|jl):\s?\d+(?:[:\]]\w*)?
    | \([\w.]+[:\ ]\d+\)\s?:? | [\w.]+:\w+:\d+\s-\s
    | \b(?:pid|PID|RANK|[Rr]ank|worker|gpu|GPU)[=:\s]\s?\d+\]?
    | \b(?:INFO|DEBUG|WARNING|NOTICE)\s\d{6,}\]?
    | (?<![\w.])[\d.?]+\s?(?:it|s|samples|tokens|tok|img|images|steps)/(?:it|s|sec|step)\b
      (?!\s*[:=])
    | \(for\ \d+\ batch(?:es)?\)
    | \d{1,3}%\|[^|]*\| | \(\s*\d+(?:\.\d+)?%\)
    | \[[=>.\#\s*-]{5,}\] | [━╸╺─█▏▎▍▌▋▊▉░▒▓]{2,}
    """,
    re.VERBOSE,
)
# Bars of Keras and rich, and that of Lightning unless it counts steps.
_BAR: Final = re.compile(
    r"\[=*>?\.+\]|\[=+>?\.*\]|\[[=>.]* \d+/\d+ [=>.]*\]|━|v_num=(?!.*global_step)"
)
_BAR_TITLE: Final = re.compile(r"([^\W\d]+) \d+(?=:\s+\d{1,3}%\|)")  # Validation DataLoader 0
_EMPTY: Final = re.compile(r"[\[(]\s*[\])]")
# Words before a counter that make it a setting.
_SETTINGS: Final = re.compile(
    r"(?:accum\w*|warm-?up|total|max|num|eval\w*|save\w*|saving|logg?\w*|every|per|for|from|best|since|skipped|nan)[\s_-]*$",
    re.IGNORECASE,
)
_WRAPPED: Final = re.compile(
    r"(?:np\.|numpy\.|torch\.)?(?:u?int\d*|b?float\d*|tensor|array|Array)\(\s*\[?([^()\[\],]+)[^()]*\)"
)
_DECIMAL_COMMA: Final = re.compile(r"(?<![\d.,])(\d+),(\d+(?:[eE][-+]?\d+)?)(?![\d,.])")
_NUMBER: Final = re.compile(
    r"""(?<![\w.@\#/^])(?<!\w-)(?<!(?<![A-Za-z\d])\d:)(?<!(?<![A-Za-z\d])\d\d:)
        (?P<number>[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:(?P<long>\.\d{5,})|\.\d+|\.(?=[\s,;)\]|]|$))?|\.\d+)(?:[eE][-+]?\d+|f-?\d+|D[-+]\d+)?
        |(?:[-+]?(?:inf(?:inity)?|Infinity|INF)|nan|NaN|NAN|n/a|N/A|None|null))
        (?P<unit>\s?%|(?:[kKMGT]i?)?B\b|[mu]?s(?:\b|(?=[A-Z][a-z]))|[kKM]\b)?
        (?:(?![\w/]|\.\w)|(?(long)(?=[A-Z][a-z])|(?!)))""",
    re.VERBOSE,
)
_PLURALS: Final = frozenset(("epochs", "steps", "iters", "iterations", "batches", "episodes"))
_AFTER_WORD: Final = re.compile(r"\s*(?:[,;|()\]}'\"]|$)|\s\s|\s+[\w./@-]+\s+[-+]?[\d.n]")
_EPOCHS: Final = r"epochs?|epoche|époque|[ée]poca|эпоха|ep|e(?=\s*\d+\s*/\s*\d)"
_INNER: Final = (
    r"global[ _]steps?|steps?|timesteps?|env_steps?|total_timesteps|iterations?|iters?|"
    r"it(?=\s?(?:[:=\[]|\d+/))|batch(?:es|_idx|_index)?|minibatch|(?:\w+_)?num_updates|updates?|up|"
    r"episodes?|rounds?|runde|schritt|étape|paso|шаг|tick"
)
_COUNT: Final = re.compile(
    rf"""(?<![\w/?&])(?:(?:train(?:ing)?|current|learning|completed)[\ _])?
        (?:(?P<epoch>{_EPOCHS})|(?P<inner>{_INNER}))(?![A-Za-z_])
        ['"]?(?:\(\w+\))?\.?(?:\s*[:=\#]{{0,2}}\s*|-)['"]?[\[(]?\s*
        (?:\d+\s*-\s*)?(?P<value>\d[\d,]*(?:\.\d+)?(?:e[+]?\d+|(?-i:[kKM]))?)(?![\w.]*\w)
        (?:\s*(?:/|\bof\b|\bvon\b|\bde\b)\s*(?P<total>\d+))?['"]?[\])]?
    |   (?<![\w.])(?:\d+-|第)?(?P<before>\d+)(?:/\s*(?P<before_total>\d+))?\s?
        (?P<unit>epoch|batch|轮|步|(?(before_total)batches|(?!)))(?![a-z]|:?\s?\[)(?:/共\d+(?:轮|步))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_AFTER_COUNT: Final = re.compile(
    r"\s*[:,]?\s*\[\s*(\d+)(?:\s*/\s*(\d+))?\b[^\]]*\]|\s*:\s+(\d+) / (\d+)(?=\s)|"
    r"[ ,]{1,3}(\d+)/(\d+)(?=\s)"
)
_BRACKETS: Final = re.compile(
    r"\s*\[\s*(\d+)\s*/\s*(\d+)\b[^\]]*\]\s*\[\s*(\d+)\s*/\s*(\d+)\b[^\]]*\]"
)
_PAIR: Final = re.compile(r"\s*\[\s*(\d+),\s*(\d+)\]")
_LEADING: Final = re.compile(
    r"[\s|>*@-]*(?:(\d+)\s*/\s*(\d+)(?=[\s:,|-]|$)|\[\s*(\d+)\s*(?:/\s*(\d+)\s*)?\]|"
    r"(?:[itk]\s?[=:]\s?)?(\d+)(?=:?[\t ]+(?:\|\s)?[^\W\d]|$))"
)
_BRACKET: Final = re.compile(
    r"\[\s*(\d+)\s*/\s*(\d+)\b[^\]\[]*\]|\[[=>.]+ (\d+)/(\d+) [=>.]*\]|"
    r"(?<=[\s|])(\d+)/(\d+)\s*\[|(?:(?<=[a-z\]]\s)|(?<=\]))\((\d+)/(\d+)\)"
)
_SIZES: Final = re.compile(r"\b([\d.]+)([kM]?)it/([\d.]+)([kM]?)it\b")
_WORD_COUNT: Final = re.compile(
    r"(train\w*|test\w*|val\w*|eval\w*)(?::?\s+(\d+)(?=\s*\[\s*\d+\s*/)|\s+(\d+)(?=,\s))",
    re.IGNORECASE,
)
_BEFORE_FRACTION: Final = re.compile(r"(?<=[^\W\d])\s+(\d+):?\s+(?=[-+]?\d*\.\d)")
_MODES: Final = re.compile(
    r"(?<![a-z])(?:(?P<eval>eval(?:uation|uating|uate)?|vali?(?:d(?:ation|ating|ate)?)?|va|vld|dev|"
    r"test(?:ing|ed)?|holdout|cv|cur(?:rent)? metric)|(?P<train>train(?:ing)?(?:_inner)?|trn?|fit))"
    r"(?![a-z])|(?P<eval_>prüf|验证|测试|検証)|(?P<train_>训练|学習)",
    re.IGNORECASE,
)
TRAINING: Final = "train"
_EVALUATIONS: Final = frozenset(("val", "valid", "validation", "dev", "test", "eval", "evaluation"))
_SPLIT: Final = re.compile(
    r":(?!(?<=\d:)\d)|[,;\t\v{}\[\]\"]|'\s|\s\s+|\s[-–•·~]+\s|"  # noqa: RUF001 - looked for
    r"(?<!\w)\|(?!\w+\|)|\.\s(?=[A-Z])"
)
_UNITS: Final = re.compile(
    r"^\s?(?:%|s|ms|us|secs?|seconds?|mins?|minutes?|hours?|h|it/s|s/it|[kMGT]?i?B|"
    r"(?:tok|tokens|samples|steps?|images|img|words|it)/(?:s|sec|second))(?=[\s.,;|)\]]|$)"
)
_PROSE: Final = frozenset(
    (
        "the",
        "a",
        "we",
        "from",
        "to",
        "than",
        "until",
        "improved",
        "did",
        "not",
        "after",
        "within",
        "if",
    )
)
# What surrounds a counter between a name and its number, such as in "loss after epoch 3: 0.5".
_BEFORE_COUNT: Final = re.compile(r"\s(?:at|after|for|in|of|on)\Z")
_BEHIND_COUNT: Final = re.compile(r"[\s)\]|,:=]{0,8}(?:(?:is|was)\b)?[\s:=]{0,8}")
_END_OF_NAME: Final = re.compile(r"\s+(?:is|was|of|at|now|reached)\Z", re.IGNORECASE)
_ARTICLE: Final = re.compile(r"(?:the|a)\s+", re.IGNORECASE)
_AROUND: Final = " \t\v.'\"*#>-_|=/:"
_INDEXED: Final = re.compile(
    r"\b(?:class|top|layer|head|label|fold|category|stage|level|task|client|agent|player)\s\Z",
    re.IGNORECASE,
)
_WORD_AFTER: Final = re.compile(r"\s[^\W\d]")
_TUPLE: Final = re.compile(r"(\('[^']{1,80}'),(?=\s)")  # a name and a number
_TAG: Final = re.compile(r"\s*<\w+>(?==)")
_DIGITS: Final = str.maketrans("123456789", "000000000")
_THOUSANDS: Final = 3  # digits of a group
_FACTORS: Final = {"": 1, "k": 1000, "M": 1_000_000}
_Span = tuple[int, int]
_NOWHERE: Final = (-1, -1)
# Calls and operators: source code, which some logs begin with.
_CALL: Final = re.compile(r"\w\($|(?:[<>!=+*/%]=|[+*/%<]|(?<![-=\w])>)\s*$")
_RULED: Final = re.compile(r"\s*[-=*#]{2,}[^-=*#]+[-=*#]{2,}\s*")  # --- batch: 10 ---
_SYMBOL: Final = re.compile(r"\|+\w+\|+$")
_LETTERS: Final = re.compile(r"[^\W\d_]")
_NAMED_NUMBER: Final = re.compile(r"[^\W\d_][^\d]*\d|nan|inf")
_WORDS: Final = re.compile(r"[^\W\d_]{3,}")


class Pair(NamedTuple):
    """A number of a line.

    Attributes
    ----------
    name
        The words before it.
    number
        It, as written.
    average
        A number in parentheses after it, which meters print as their average; "" if there is none.
    mode
        The mode that a word before it names, such as ``[valid]``: `TRAINING`, that of an
        evaluation, or "".
    """

    name: str
    digits: str
    average: str = ""
    mode: str = ""


class LineFields(NamedTuple):
    """What a line says.

    Attributes
    ----------
    counts
        Its counters.
    pairs
        Its numbers that have names.
    mode
        The mode that the first of its words names; see `Pair`.
    is_bar
        Whether it is drawn over while it grows, and shows running means, as those of Keras do.
    is_tqdm
        Whether it is a bar that says how much is done.
    words
        The number of words that belong to no number.
    """

    counts: tuple[Count, ...] = ()
    pairs: tuple[Pair, ...] = ()
    mode: str = ""
    is_bar: bool = False
    is_tqdm: bool = False
    words: int = 0


def line_fields(line: str) -> LineFields:
    """Return the counters and numbers of a line, without colours and control characters.

    Where they are depends on everything but the values of digits, so that it is found once for all
    lines that are alike.

    >>> fields = line_fields("Epoch [1/10], Step [100/600], Loss: 2.4219")
    >>> [(count.value, count.total) for count in fields.counts], fields.pairs[0].name
    ([(1.0, 10), (100.0, 600)], 'Loss')
    """
    line = line.replace("#011", "\t\t\t\t")  # a tabulator in a system log
    form = _places(line.translate(_DIGITS))
    if form is _NOTHING:
        return form.fields
    digits = line.replace(",", ".") if form.has_decimal_comma else line
    counts = tuple(_count_at(place, line, digits) for place in form.counts)
    pairs = tuple(
        Pair(
            _spaced(line[slice(*pair.name)]),
            digits[slice(*pair.digits)],
            digits[slice(*pair.average)],
            pair.mode,
        )
        for pair in form.pairs
    )
    return form.fields._replace(counts=counts, pairs=pairs)


def _count_at(place: "_CountPlace", line: str, digits: str) -> Count:
    value = digits[slice(*place.value)]
    amount, rounding = rounded_number(value) or (float(value.replace(",", "")), 0.0)
    return Count(
        line[slice(*place.name)],
        place.rank,
        amount * place.factors[0],
        int(min(float(digits[slice(*place.total)] or 0) * place.factors[1], SEGMENT_STEPS)),
        rounding,
    )


@lru_cache(maxsize=8192)
def _spaced(name: str) -> str:
    return " ".join(name.split())


@lru_cache(maxsize=4096)
def _places(line: str) -> "_Places":
    """Return where the counters and numbers of a line are, whose digits are all 0."""
    plain = line if line.isascii() else line.translate(_LINE_CHARACTERS)
    is_tqdm = "%|" in plain
    is_bar = _BAR.search(plain) is not None
    if is_tqdm:
        plain = _BAR_TITLE.sub(_without_index, plain)
    plain = _EMPTY.sub(_blank, _NOISE.sub(_blank, plain))
    if "(" in plain:
        plain = _WRAPPED.sub(_unwrapped, plain)
    if "('" in plain:
        plain = _TUPLE.sub(r"\1:", plain)
    if ">=" in plain:
        plain = _TAG.sub(_blank, plain)
    has_decimal_comma = ("." not in plain or ";" in plain) and any(
        len(match[2]) != _THOUSANDS for match in _DECIMAL_COMMA.finditer(plain)
    )
    if has_decimal_comma:
        plain = _DECIMAL_COMMA.sub(r"\1.\2", plain)
    counts, plain = _counts(plain)
    pairs, words, mode = _pairs(plain)
    if not counts and not pairs and not mode and not words:
        return _NOTHING
    fields = LineFields((), (), mode, is_bar, is_tqdm, words)
    return _Places(counts, pairs, has_decimal_comma, fields)


class _CountPlace(NamedTuple):
    name: _Span
    rank: int
    value: _Span
    total: _Span = _NOWHERE
    factors: tuple[int, int] = (1, 1)


class _PairPlace(NamedTuple):
    name: _Span
    digits: _Span
    average: _Span = _NOWHERE
    mode: str = ""


class _Places(NamedTuple):
    counts: Sequence[_CountPlace]
    pairs: Sequence[_PairPlace]
    has_decimal_comma: bool
    fields: LineFields


_NOTHING: Final = _Places((), (), has_decimal_comma=False, fields=LineFields())


def _blank(match: re.Match[str]) -> str:
    """Return tabulators in place of a match."""
    return "\t" * len(match[0])


def _without_index(match: re.Match[str]) -> str:
    """Return the title of a bar without the index behind it, unless that counts."""
    is_count = counter_rank(match[1]) < NO_COUNTER or _MODES.fullmatch(match[1])
    return match[0] if is_count else match[1] + "\t" * (len(match[0]) - len(match[1]))


def _unwrapped(match: re.Match[str]) -> str:
    """Return the number in a call, between blanks."""
    start, end = (counter - match.start() for counter in match.span(1))
    return " " * start + match[1] + " " * (len(match[0]) - end)


# -- counters --------------------------------------------------------------------------------


def _counts(plain: str) -> tuple[list[_CountPlace], str]:
    """Return the counters of a line, and the line with vertical tabulators in their places."""
    counters: list[tuple[_Span, _CountPlace]] = []
    for match in _COUNT.finditer(plain):
        if match["unit"]:
            rank = EPOCH if match["unit"].lower() in {"epoch", "轮"} else UNNAMED
            counter = _CountPlace(
                match.span("unit"), rank, match.span("before"), match.span("before_total")
            )
            counters.append((match.span(), counter))
            continue
        rank = _rank_of(match, plain)
        if rank == NO_COUNTER:
            continue
        counter = _CountPlace(
            match.span("epoch" if match["epoch"] else "inner"),
            rank,
            match.span("value"),
            match.span("total"),
        )
        counters.append((match.span(), counter))
        if rank == EPOCH and (after := _AFTER_COUNT.match(plain, match.end())):
            value = next(group for group in (1, 3, 5) if after[group])
            counters.append((after.span(), _unnamed(after, value, value + 1)))
    is_size = all(counter.rank == UNNAMED and counter.total[0] < 0 for _, counter in counters)
    if is_size and not (counters and _RULED.fullmatch(plain)):  # of a batch
        counters = _found_unnamed(plain)
    elif all(counter.rank == EPOCH for _, counter in counters):
        counters += _found_beside(plain, max(end for (_, end), _ in counters))
    for (start, end), _ in counters:
        modes = _MODES.search(plain[start:end])
        word = range(modes.start() + start, modes.end() + start) if modes else ()
        kept = "".join(plain[counter] if counter in word else "\v" for counter in range(start, end))
        plain = f"{plain[:start]}{kept}{plain[end:]}"
    return [counter for _, counter in counters], plain


def _found_beside(plain: str, start: int) -> list[tuple[_Span, _CountPlace]]:
    """Return the counter within the epoch that follows it, such as ``[20/100]``; it has no name."""
    match = _BRACKET.search(plain, start)
    if match is None:
        return []
    return [(match.span(), _of_last_groups(match))]


def _rank_of(match: re.Match[str], plain: str) -> int:
    """Return the rank of a counter with a name; `NO_COUNTER` if it is a setting."""
    word = (match["epoch"] or match["inner"]).lower()
    if not match["total"] and (
        _SETTINGS.search(plain, 0, match.start())
        or (word in _PLURALS and not _is_row(plain, match))
    ):
        return NO_COUNTER
    if match["epoch"]:
        return EPOCH
    return min(counter_rank("num_updates" if "num_updates" in word else word), EPOCH - 1)


def _is_row(plain: str, match: re.Match[str]) -> bool:
    """Return whether a counter in the plural is that of a row, and no setting such as steps=500."""
    is_setting = plain[max(match.start() - 1, 0)] in "'\"" or "=" in match[0]
    return not is_setting and bool(_NAMED_NUMBER.search(plain, match.end()))


def _unnamed(match: re.Match[str], value: int, total: int, rank: int = UNNAMED) -> _CountPlace:
    """Return a counter without a name, in groups of a match."""
    return _CountPlace(_NOWHERE, rank, match.span(value), match.span(total) if total else _NOWHERE)


def _of_last_groups(match: re.Match[str]) -> _CountPlace:
    """Return a counter without a name, whose value and total are the last groups that matched."""
    total = match.lastindex or 0
    return _unnamed(match, total - 1, total)


def _found_unnamed(plain: str) -> list[tuple[_Span, _CountPlace]]:
    """Find counters that have no names, at places where counters are."""
    if match := _BRACKETS.search(plain):
        inner = _unnamed(match, 3, 4)
        return [(match.span(), _unnamed(match, 1, 2, EPOCH)), (match.span(), inner)]
    if match := _PAIR.match(plain):
        return [(match.span(), _unnamed(match, 1, 0, EPOCH)), (match.span(), _unnamed(match, 2, 0))]
    if match := _SIZES.search(plain):
        factors = _FACTORS[match[2]], _FACTORS[match[4]]
        return [(match.span(), _unnamed(match, 1, 3)._replace(factors=factors))]
    counters: list[tuple[_Span, _CountPlace]] = []
    if match := _WORD_COUNT.search(plain):
        group = 2 if match[2] else 3
        counters.append((match.span(group), _unnamed(match, group, 0, EPOCH)))
    if match := _BRACKET.search(plain):
        counters.append((match.span(), _of_last_groups(match)))
    elif match := _LEADING.match(plain):
        value = next(group for group in (1, 3, 5) if match[group])
        counters.append((match.span(), _unnamed(match, value, value + 1 if value < 5 else 0)))  # noqa: PLR2004 - the last group has no total
    elif match := _BEFORE_FRACTION.search(plain):
        counters.append((match.span(1), _unnamed(match, 1, 0)))
    return counters


# -- numbers ---------------------------------------------------------------------------------


def _pairs(plain: str) -> tuple[list[_PairPlace], int, str]:
    """Return the numbers with names, how many words belong to none, and the first mode."""
    pairs: list[_PairPlace] = []
    words = end = 0
    mode = ""
    for match in _NUMBER.finditer(plain):
        gap = plain[end : match.start()]
        is_word = match["number"][-1].isalpha() and gap.rstrip("'\" ")[-1:] not in {":", "=", ">"}
        if is_word and not _AFTER_WORD.match(plain, match.end()):
            continue  # number of nan iterations
        if _INDEXED.search(gap) and _WORD_AFTER.match(plain, match.end()):
            continue  # class 0 accuracy
        if "|" in gap and _is_of_table(gap):
            return [], len(_WORDS.findall(plain)), ""
        start, end = end, match.end()
        if pairs and gap.strip() == "(" and plain[end : end + 1] in ")%":
            is_change = match["number"][0] in "+-" and plain[pairs[-1].digits[0]] != "-"
            if not is_change:
                pairs[-1] = pairs[-1]._replace(average=match.span("number"))
            continue
        first, last = name_before(gap, is_first=not pairs)
        before = gap[:first] if last else gap
        if any(map(str.isalpha, before)):
            words += len(_WORDS.findall(before))
            mode = next(iter([*mode_words(before)][-1:]), mode)
        if last and len(pairs) < MAX_PAIRS:
            name = start + first, start + last
            pairs.append(_PairPlace(name, match.span("number"), mode=mode))
    ending = plain[end:]
    mode = pairs[0].mode if pairs else next(mode_words(ending), mode)
    return pairs, words + len(_WORDS.findall(ending)), mode


def _is_of_table(gap: str) -> bool:
    """Return whether several cells with words precede a number, the first naming no mode.

    >>> _is_of_table(" | layer | Linear | "), _is_of_table(" | test | loss | ")
    (True, False)
    """
    *cells, last = gap.split("|")
    cells = [cell for cell in cells[1:] if _LETTERS.search(cell)]
    return len(cells) > 1 and not (_LETTERS.search(last) or any(mode_words(cells[0])))


def name_before(gap: str, *, is_first: bool = False) -> _Span:
    """Return where the name at the end of the text before a number is; (0, 0) if there is none.

    >>> [", train acc "[slice(*name_before(", train acc "))], name_before(" / ")]
    ['train acc', (0, 0)]
    """
    if _CALL.search(gap):
        return 0, 0
    before, count, behind = gap.rpartition("\v")
    if count and _BEHIND_COUNT.fullmatch(behind):
        gap = _BEFORE_COUNT.sub("", before.rstrip("\v \t([|,:="))
        if _MODES.fullmatch(gap.strip()):
            return 0, 0
    symbol = _SYMBOL.search(gap.rstrip(" :=~>-"))
    if symbol:
        return symbol.span()
    unit = None if is_first else _UNITS.match(gap)
    start = unit.end() if unit else 0
    end = len(gap.rstrip(" :=~>-–<([{'\"|→*+±\t\v"))  # noqa: RUF001 - looked for
    while ending := _END_OF_NAME.search(gap, start, max(start, end)):
        end = len(gap[: ending.start()].rstrip("'\""))
    for match in _SPLIT.finditer(gap, start, end):
        start = match.end()
    piece = gap[start:end]
    start += len(piece) - len(_balanced(piece))
    piece = gap[start:end]
    start += len(piece) - len(piece.lstrip(_AROUND))
    end -= len(piece) - len(piece.rstrip(_AROUND))
    if article := _ARTICLE.match(gap, start, end):
        start = article.end()
    words = gap[start:end].lower().split()
    if not 0 < len(words) <= _MAX_WORDS or end - start > _MAX_NAME:
        return 0, 0
    if not _LETTERS.search(gap, start, end) or not _PROSE.isdisjoint(words):
        return 0, 0
    return start, end


def _balanced(plain: str) -> str:
    """Return the end of a text after its last parenthesis that has no counterpart."""
    depth = 0
    for position in range(len(plain) - 1, -1, -1):
        if plain[position] == ")":
            depth += 1
        elif plain[position] == "(":
            depth -= 1
            if depth < 0:
                return plain[position + 1 :]
    if depth:
        position = plain.find(")")
        while depth and position >= 0:
            plain, depth = plain[position + 1 :], depth - 1
            position = plain.find(")")
    return plain


def mode_words(plain: str) -> Iterator[str]:
    """Yield the modes that the words of a text name, in order.

    >>> list(mode_words("Train loss, Validation loss")), list(mode_words("Evaluating"))
    (['train', 'validation'], ['eval'])
    """
    for match in _MODES.finditer(plain):
        word = match[0].lower()
        if (match.lastgroup or "").startswith(TRAINING):
            yield TRAINING
        else:
            yield word if word in _EVALUATIONS else "eval"
