"""line_fields: the counters and the numbers in one line of free text."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from rule_core.sources.rows.row_steps import EPOCH, NO_COUNTER, UNNAMED, Count, counter_rank

MAX_PAIRS: Final = 1000  # of a line
_MAX_NAME: Final = 80  # characters
_MAX_WORDS: Final = 6  # of a name
_LINE_CHARACTERS: Final = str.maketrans("：，；％（）＝【】│║┃", ":,;%()=[]|||")  # noqa: RUF001 - looked for

# What stands beside numbers of a training and is none of them: times, places in source code, the
# sizes and the percentages of progress bars, processes.
_NOISE: Final = re.compile(
    r"""
      ^[IWEFD]\d{4}\ [\d:.]+\s+\d+\ \S+:\d+\]               # glog
    | \d{4}[-/.]\d\d?[-/.]\d\d?(?:[T_\s]\s*\d\d?:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?
    | \b\d\d?/\d\d?(?:/\d{4})?(?=\s\d\d:\d\d)
    | (?<![\w.])(?:\d+\ days?,\ )?\d+:\d\d(?::\d\d)?(?:[.,]\d+)?(?![\w.:])
    | (?<![\w.])\d+h\s?\d+m(?:\s?\d+s)? | (?<![\w.])\d+m\s?\d+s\b
    | \[[A-Za-z_]\w*(?:\.\w+)+:\d+(?:,\s*rank=\d+)?\]
    | [\w./-]+\.(?:py|cc|cpp|cu|h|java|rs|go|jl):\s?\d+(?:[:\]]\w*)?
    | \([\w.]+[:\ ]\d+\)\s?:? | [\w.]+:\w+:\d+\s-\s
    | \b(?:pid|PID|RANK|[Rr]ank|worker|gpu|GPU)[=:\s]\s?\d+\]?
    | \b(?:INFO|DEBUG|WARNING|NOTICE)\s\d{6,}\]?
    | (?<![\w.])[\d.?]+\s?(?:it|s|samples|tokens|tok|img|images|steps)/(?:it|s|sec|step)\b
      (?!\s*[:=])
    | \d{1,3}%\|[^|]*\| | \(\s*\d+(?:\.\d+)?%\)
    | \[[=>.\#\s*-]{5,}\] | [━╸╺─█▏▎▍▌▋▊▉░▒▓]{2,}
    """,
    re.VERBOSE,
)
# Bars of Keras and rich, and that of Lightning unless it counts steps.
_BAR: Final = re.compile(r"\[=*>?\.+\]|\[=+>?\.*\]|━|v_num=(?!.*global_step)")
_EMPTY: Final = re.compile(r"[\[(]\s*[\])]")
# Words before a counter that make it a setting.
_SETTINGS: Final = re.compile(
    r"(?:accum\w*|warm-?up|total|max|num|eval\w*|sav\w+|logg?\w*|every|per|for|skipped|nan)[\s_]*$",
    re.IGNORECASE,
)
_WRAPPED: Final = re.compile(
    r"(?:np\.|numpy\.|torch\.)?(?:u?int\d*|b?float\d*|tensor|array|Array)\(\s*\[?([^()\[\],]+)[^()]*\)"
)
_DECIMAL_COMMA: Final = re.compile(r"(?<![\d.,])(\d+),(\d+(?:[eE][-+]?\d+)?)(?![\d,.])")
_NUMBER: Final = re.compile(
    r"""(?<![\w.@\#/^])(?<!\w-)
        (?P<number>[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+|\.(?=[\s,;)\]|]|$))?|\.\d+)(?:[eE][-+]?\d+)?
        |(?:[-+]?(?:inf(?:inity)?|Infinity|INF)|nan|NaN|NAN|n/a|N/A|None|null))
        (?P<unit>\s?%|(?:[kKMGT]i?)?B\b|ms\b|s\b|us\b|[kKM]\b)?(?![\w/]|\.\d)""",
    re.VERBOSE,
)
_PLURALS: Final = frozenset(("epochs", "steps", "iters", "iterations", "batches", "episodes"))
_AFTER_WORD: Final = re.compile(r"\s*(?:[,;|()\]}'\"]|$)|\s\s|\s+[\w./@-]+\s+[-+]?[\d.n]")
_EPOCHS: Final = "epochs?|epoche|époque|época|эпоха|ep"
_INNER: Final = (
    r"global[ _]steps?|steps?|timesteps|env_steps?|total_timesteps|iterations?|iters?|"
    r"it(?=\s?[:=\[])|batch(?:es|_idx|_index)?|minibatch|(?:\w+_)?num_updates|updates?|up|"
    r"episodes?|rounds?|runde|schritt|étape|paso|шаг|tick"
)
_COUNT: Final = re.compile(
    rf"""(?<![\w/?&])(?:(?:train(?:ing)?|current|learning|completed)[\ _])?
        (?:(?P<epoch>{_EPOCHS})|(?P<inner>{_INNER}))(?![A-Za-z_])
        ['"]?(?:\(\w+\))?\.?\s*[:=\#]{{0,2}}\s*['"]?[\[(]?\s*
        (?:\d+\s*-\s*)?(?P<value>\d[\d,]*(?:\.\d+)?(?:e[+]?\d+)?)(?![\w.]*\w)
        (?:\s*(?:/|\bof\b|\bvon\b|\bde\b)\s*(?P<total>\d+))?['"]?[\])]?
    |   (?<![\w.])(?:\d+-|第)?(?P<before>\d+)(?:/(?P<before_total>\d+))?\s?
        (?P<unit>epoch|batch|轮|步)(?![a-z])(?:/共\d+(?:轮|步))?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_AFTER_COUNT: Final = re.compile(
    r"\s*[:,]?\s*\[\s*(\d+)(?:\s*/\s*(\d+))?\b[^\]]*\]|\s*:\s+(\d+) / (\d+)(?=\s)"
)
_BRACKETS: Final = re.compile(
    r"\s*\[\s*(\d+)\s*/\s*(\d+)\b[^\]]*\]\s*\[\s*(\d+)\s*/\s*(\d+)\b[^\]]*\]"
)
_PAIR: Final = re.compile(r"\s*\[\s*(\d+),\s*(\d+)\]")
_LEADING: Final = re.compile(
    r"[\s|>*@-]*(?:(\d+)\s*/\s*(\d+)(?=[\s:,|-]|$)|\[\s*(\d+)\s*(?:/\s*(\d+)\s*)?\]|"
    r"(\d+)(?=:?[\t ]+[^\W\d]|$))"
)
_BRACKET: Final = re.compile(r"\[\s*(\d+)\s*/\s*(\d+)\b[^\]\[]*\]|(?<=[\s|])(\d+)/(\d+)\s*\[")
_SIZES: Final = re.compile(r"\b([\d.]+)([kM]?)it/([\d.]+)([kM]?)it\b")
_WORD_COUNT: Final = re.compile(
    r"(train\w*|test\w*|val\w*|eval\w*):?\s+(\d+)(?=\s*\[\s*\d+\s*/|,\s)", re.IGNORECASE
)
_MODES: Final = re.compile(
    r"(?<![a-z])(?:(?P<eval>eval(?:uation|uating|uate)?|vali?(?:d(?:ation|ating|ate)?)?|va|dev|"
    r"test(?:ing|ed)?|holdout|cur(?:rent)? metric)|(?P<train>train(?:ing)?(?:_inner)?|tr|fit))"
    r"(?![a-z])|(?P<eval_>prüf|验证|测试|検証)|(?P<train_>训练|学習)",
    re.IGNORECASE,
)
TRAINING: Final = "train"
_EVALUATIONS: Final = frozenset(("val", "valid", "validation", "dev", "test", "eval", "evaluation"))
_SPLIT: Final = re.compile(r"[,;:\t{}\[\]\"]|\s\s+|\s[-–•·~]+\s|(?<!\w)\|(?!\w+\|)")  # noqa: RUF001 - looked for
_UNITS: Final = re.compile(
    r"^\s?(?:%|s|ms|us|secs?|seconds?|mins?|minutes?|hours?|h|it/s|s/it|[kMGT]?i?B|"
    r"(?:tok|tokens|samples|steps?|images|img|words|it)/s(?:ec(?:ond)?)?)(?=[\s.,;|)\]]|$)"
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
        "reached",
        "did",
        "not",
        "after",
        "within",
        "if",
    )
)
_END_OF_NAME: Final = re.compile(r"\s+(?:is|was|of|at|now)\Z", re.IGNORECASE)
_AROUND: Final = " \t.'\"*#>-_|=/:"
_TAG: Final = re.compile(r"\s*<\w+>(?==)")
_DIGITS: Final = str.maketrans("123456789", "000000000")
_THOUSANDS: Final = 3  # digits of a group
_FACTORS: Final = {"": 1, "k": 1000, "M": 1_000_000}
_Span = tuple[int, int]
_NOWHERE: Final = (-1, -1)
_CALL: Final = re.compile(r"\w\($")
_SYMBOL: Final = re.compile(r"\|+\w+\|+$")
_LETTERS: Final = re.compile(r"[^\W\d_]")
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
    number: str
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
    places = _places(line.translate(_DIGITS))
    if places is _NOTHING:
        return places.fields
    number = line.replace(",", ".") if places.has_decimal_comma else line
    counts = tuple(
        Count(
            line[slice(*count.name)],
            count.rank,
            float(number[slice(*count.value)].replace(",", "")) * count.factors[0],
            int(float(number[slice(*count.total)] or 0) * count.factors[1]),
        )
        for count in places.counts
    )
    pairs = tuple(
        Pair(
            _spaced(line[slice(*pair.name)]),
            number[slice(*pair.number)],
            number[slice(*pair.average)],
            pair.mode,
        )
        for pair in places.pairs
    )
    return places.fields._replace(counts=counts, pairs=pairs)


@lru_cache(maxsize=8192)
def _spaced(name: str) -> str:
    return " ".join(name.split())


@lru_cache(maxsize=4096)
def _places(line: str) -> "_Places":
    """Return where the counters and numbers of a line are, whose digits are all 0."""
    text = line if line.isascii() else line.translate(_LINE_CHARACTERS)
    is_tqdm = "%|" in text
    is_bar = _BAR.search(text) is not None
    text = _EMPTY.sub(_blank, _NOISE.sub(_blank, text.replace("#000", "\t\t\t\t")))
    if "(" in text:
        text = _WRAPPED.sub(_unwrapped, text)
    if ">=" in text:
        text = _TAG.sub(_blank, text)
    has_decimal_comma = ("." not in text or ";" in text) and any(
        len(match[2]) != _THOUSANDS for match in _DECIMAL_COMMA.finditer(text)
    )
    if has_decimal_comma:
        text = _DECIMAL_COMMA.sub(r"\1.\2", text)
    counts, text = _counts(text)
    pairs, words, mode = _pairs(text)
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
    number: _Span
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


def _unwrapped(match: re.Match[str]) -> str:
    """Return the number in a call, between blanks."""
    start, end = (place - match.start() for place in match.span(1))
    return " " * start + match[1] + " " * (len(match[0]) - end)


# -- counters --------------------------------------------------------------------------------


def _counts(text: str) -> tuple[list[_CountPlace], str]:
    """Return the counters of a line, and the line with tabulators in their places."""
    found: list[tuple[_Span, _CountPlace]] = []
    for match in _COUNT.finditer(text):
        if match["unit"]:
            rank = EPOCH if match["unit"].lower() in {"epoch", "轮"} else UNNAMED
            place = _CountPlace(
                match.span("unit"), rank, match.span("before"), match.span("before_total")
            )
            found.append((match.span(), place))
            continue
        rank = _rank_of(match, text)
        if rank == NO_COUNTER:
            continue
        place = _CountPlace(
            match.span("epoch" if match["epoch"] else "inner"),
            rank,
            match.span("value"),
            match.span("total"),
        )
        found.append((match.span(), place))
        if rank == EPOCH and (after := _AFTER_COUNT.match(text, match.end())):
            value, total = (1, 2) if after[1] else (3, 4)
            found.append((after.span(), _unnamed(after, value, total)))
    if all(place.rank == UNNAMED and place.total[0] < 0 for _, place in found):  # a batch size
        found = _found_unnamed(text)
    elif all(place.rank == EPOCH for _, place in found):
        found += _found_beside(text, max(end for (_, end), _ in found))
    for (start, end), _ in found:
        modes = _MODES.search(text[start:end])
        word = range(modes.start() + start, modes.end() + start) if modes else ()
        kept = "".join(text[place] if place in word else "\t" for place in range(start, end))
        text = f"{text[:start]}{kept}{text[end:]}"
    return [place for _, place in found], text


def _found_beside(text: str, start: int) -> list[tuple[_Span, _CountPlace]]:
    """Return the counter within the epoch that follows it, such as ``[20/100]``; it has no name."""
    match = _BRACKET.search(text, start)
    if match is None:
        return []
    value, total = (1, 2) if match[1] else (3, 4)
    return [(match.span(), _unnamed(match, value, total))]


def _rank_of(match: re.Match[str], text: str) -> int:
    """Return the rank of a counter with a name; `NO_COUNTER` if it is a setting."""
    word = (match["epoch"] or match["inner"]).lower()
    if not match["total"] and (
        _SETTINGS.search(text, 0, match.start())
        or (word in _PLURALS and not _LETTERS.search(text, match.end()))
    ):
        return NO_COUNTER
    if match["epoch"]:
        return EPOCH
    return min(counter_rank("num_updates" if "num_updates" in word else word), EPOCH - 1)


def _unnamed(match: re.Match[str], value: int, total: int, rank: int = UNNAMED) -> _CountPlace:
    """Return a counter without a name, in groups of a match."""
    return _CountPlace(_NOWHERE, rank, match.span(value), match.span(total) if total else _NOWHERE)


def _found_unnamed(text: str) -> list[tuple[_Span, _CountPlace]]:
    """Find counters that have no names, at places where counters are."""
    if match := _BRACKETS.search(text):
        inner = _unnamed(match, 3, 4)
        return [(match.span(), _unnamed(match, 1, 2, EPOCH)), (match.span(), inner)]
    if match := _PAIR.match(text):
        return [(match.span(), _unnamed(match, 1, 0, EPOCH)), (match.span(), _unnamed(match, 2, 0))]
    if match := _SIZES.search(text):
        factors = _FACTORS[match[2]], _FACTORS[match[4]]
        return [(match.span(), _unnamed(match, 1, 3)._replace(factors=factors))]
    found: list[tuple[_Span, _CountPlace]] = []
    if match := _WORD_COUNT.search(text):
        found.append((match.span(2), _unnamed(match, 2, 0, EPOCH)))
    if match := _BRACKET.search(text):
        value, total = (1, 2) if match[1] else (3, 4)
        found.append((match.span(), _unnamed(match, value, total)))
    elif match := _LEADING.match(text):
        value = next(group for group in (1, 3, 5) if match[group])
        found.append((match.span(), _unnamed(match, value, value + 1 if value < 5 else 0)))  # noqa: PLR2004 - the last group has no total
    return found


# -- numbers ---------------------------------------------------------------------------------


def _pairs(text: str) -> tuple[list[_PairPlace], int, str]:
    """Return the numbers with names, how many words belong to none, and the first mode."""
    pairs: list[_PairPlace] = []
    words = end = 0
    mode = ""
    for match in _NUMBER.finditer(text):
        gap = text[end : match.start()]
        is_word = match["number"][-1].isalpha() and gap.rstrip("'\" ")[-1:] not in {":", "=", ">"}
        if is_word and not _AFTER_WORD.match(text, match.end()):
            continue  # number of nan iterations
        start, end = end, match.end()
        if pairs and gap.strip() == "(" and text[end : end + 1] in ")%":
            is_change = match["number"][0] in "+-" and text[pairs[-1].number[0]] != "-"
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
    rest = text[end:]
    mode = pairs[0].mode if pairs else next(mode_words(rest), mode)
    return pairs, words + len(_WORDS.findall(rest)), mode


def name_before(gap: str, *, is_first: bool = False) -> _Span:
    """Return where the name at the end of the text before a number is; (0, 0) if there is none.

    >>> [", train acc "[slice(*name_before(", train acc "))], name_before(" / ")]
    ['train acc', (0, 0)]
    """
    if _CALL.search(gap):
        return 0, 0
    symbol = _SYMBOL.search(gap.rstrip(" :=~>-"))
    if symbol:
        return symbol.span()
    unit = None if is_first else _UNITS.match(gap)
    start = unit.end() if unit else 0
    end = len(gap.rstrip(" :=~>-–<([{'\"|→*+±\t"))  # noqa: RUF001 - looked for
    for match in _SPLIT.finditer(gap, start, end):
        start = match.end()
    piece = gap[start:end]
    start += len(piece) - len(_balanced(piece))
    piece = gap[start:end]
    start += len(piece) - len(piece.lstrip(_AROUND))
    end -= len(piece) - len(piece.rstrip(_AROUND))
    while ending := _END_OF_NAME.search(gap, start, max(start, end)):
        end = ending.start()
    words = gap[start:end].lower().split()
    if not 0 < len(words) <= _MAX_WORDS or end - start > _MAX_NAME:
        return 0, 0
    if not _LETTERS.search(gap, start, end) or not _PROSE.isdisjoint(words):
        return 0, 0
    return start, end


def _balanced(text: str) -> str:
    """Return the end of a text after its last parenthesis that has no counterpart."""
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        if text[position] == ")":
            depth += 1
        elif text[position] == "(":
            depth -= 1
            if depth < 0:
                return text[position + 1 :]
    if depth:
        position = text.find(")")
        while depth and position >= 0:
            text, depth = text[position + 1 :], depth - 1
            position = text.find(")")
    return text


def mode_words(text: str) -> Iterator[str]:
    """Yield the modes that the words of a text name, in order.

    >>> list(mode_words("Train loss, Validation loss")), list(mode_words("Evaluating"))
    (['train', 'validation'], ['eval'])
    """
    for match in _MODES.finditer(text):
        word = match[0].lower()
        if (match.lastgroup or "").startswith(TRAINING):
            yield TRAINING
        else:
            yield word if word in _EVALUATIONS else "eval"
