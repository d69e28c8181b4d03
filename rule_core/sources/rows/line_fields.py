"""line_fields: the counters and the numbers in one line of free text."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from rule_core.sources.rows.row_steps import EPOCH, UNNAMED, Count, counter_rank

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
    | (?<![\w.])[\d.?]+\s?(?:it|s|samples|tokens|tok|img|images|steps)/(?:it|s|sec|step)\b(?!\s*[:=])
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
    "global[ _]steps?|steps?|timesteps|env_steps?|total_timesteps|iterations?|iters?|it|"
    r"batch(?:es)?|(?:\w+_)?num_updates|updates?|up|episodes?|rounds?|runde|schritt|étape|paso|шаг|tick"
)
_COUNT: Final = re.compile(
    rf"""(?<![\w/?&])(?:(?:train(?:ing)?|current|learning|completed)[\ _])?
        (?:(?P<epoch>{_EPOCHS})|(?P<inner>{_INNER}))(?![A-Za-z_])
        ['"]?(?:\(\w+\))?\.?\s*[:=\#]{{0,2}}\s*['"]?[\[(]?\s*
        (?:\d+\s*-\s*)?(?P<value>\d[\d,]*(?:\.\d+)?(?:e[+]?\d+)?)(?![\w.]*\w)
        (?:\s*(?:/|\bof\b|\bvon\b|\bde\b)\s*(?P<total>\d+))?['"]?[\])]?
    |   (?<![\w.])(?:\d+-|第)?(?P<before>\d+)(?:/(?P<before_total>\d+))?\s?(?P<unit>epoch|batch|轮|步)(?![a-z])(?:/共\d+(?:轮|步))?
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
    r"[\s|>*@-]*(?:(\d+)\s*/\s*(\d+)(?=[\s:,|-]|$)|\[\s*(\d+)\s*(?:/\s*(\d+)\s*)?\]|(\d+)(?=:?[\t ]+[^\W\d]|$))"
)
_BRACKET: Final = re.compile(r"\[\s*(\d+)\s*/\s*(\d+)\b[^\]\[]*\]|(?<=[\s|])(\d+)/(\d+)\s*\[")
_SIZES: Final = re.compile(r"\b([\d.]+)([kM]?)it/([\d.]+)([kM]?)it\b")
_WORD_COUNT: Final = re.compile(
    r"(train\w*|test\w*|val\w*|eval\w*):\s+(\d+)\s+(?=\[\s*\d+\s*/)", re.IGNORECASE
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
    ("from", "to", "than", "until", "improved", "reached", "did", "not", "after", "within", "if")
)
_ENDS_OF_NAMES: Final = re.compile(r"\s+(?:is|was|of|at|now|=|:)$", re.IGNORECASE)
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


_Add = Callable[[str, int, str, str | None, int, int], None]


def line_fields(line: str) -> LineFields:
    """Return the counters and numbers of a line, without colours and control characters.

    >>> fields = line_fields("Epoch [1/10], Step [100/600], Loss: 2.4219")
    >>> [(count.value, count.total) for count in fields.counts], fields.pairs[0].name
    ([(1, 10), (100, 600)], 'Loss')
    """
    text = line.translate(_LINE_CHARACTERS) if not line.isascii() else line
    is_tqdm = "%|" in text
    is_bar = _BAR.search(text) is not None
    text = _EMPTY.sub("\t", _NOISE.sub("\t", text.replace("#011", "\t")))
    if "(" in text:
        text = _WRAPPED.sub(r"\1", text)
    if ">=" in text:
        text = re.sub(r"\s*<\w+>(?==)", "", text)
    if "." not in text or ";" in text:
        text = _with_points(text)
    counts, text = _counts(text)
    pairs, words = _pairs(text)
    mode = pairs[0].mode if pairs else next(mode_words(text), "")
    return LineFields(counts, pairs, mode, is_bar, is_tqdm, words)


def _with_points(text: str) -> str:
    """Return a line with decimal commas as points, if it has any."""
    matches = [*_DECIMAL_COMMA.finditer(text)]
    if matches and any(len(match[2]) != 3 for match in matches):  # noqa: PLR2004 - of thousands
        return _DECIMAL_COMMA.sub(r"\1.\2", text)
    return text


# -- counters --------------------------------------------------------------------------------


def _counts(text: str) -> tuple[tuple[Count, ...], str]:
    """Return the counters of a line, and the line with tabulators in their places."""
    counts: list[Count] = []
    spans: list[tuple[int, int]] = []

    def add(name: str, rank: int, value: str, total: str | None, start: int, end: int) -> None:
        if not any(start < other_end and end > other for other, other_end in spans):
            number = float(value.replace(",", ""))
            counts.append(Count(name, rank, number, int(total or 0)))
            spans.append((start, end))

    for match in _COUNT.finditer(text):
        if match["unit"]:
            rank = EPOCH if match["unit"].lower() in {"epoch", "轮"} else UNNAMED
            add(match["unit"], rank, match["before"], match["before_total"], *match.span())
            continue
        word = match["epoch"] or match["inner"]
        if _SETTINGS.search(text, 0, match.start()) and not match["total"]:
            continue
        if (
            word.lower() in _PLURALS
            and not match["total"]
            and not _LETTERS.search(text[match.end() :])
        ):
            continue
        rank = EPOCH if match["epoch"] else min(counter_rank(word.removesuffix(".")), EPOCH - 1)
        if word.lower().endswith("num_updates"):
            rank = counter_rank("num_updates")
        add(word, rank, match["value"], match["total"], *match.span())
        if rank == EPOCH and (after := _AFTER_COUNT.match(text, match.end())):
            value, total = (after[1], after[2]) if after[1] else (after[3], after[4])
            add("", UNNAMED, value, total, *after.span())
    if all(count.rank == UNNAMED and not count.total for count in counts):  # a batch size
        counts.clear()
        spans.clear()
        _add_unnamed(text, add)
    elif all(count.rank == EPOCH for count in counts):
        for match in _BRACKET.finditer(text):
            value, total = (match[1], match[2]) if match[1] else (match[3], match[4])
            add("", UNNAMED, value, total, *match.span())
            break
    for start, end in sorted(spans, reverse=True):
        modes = _MODES.search(text[start:end])
        text = f"{text[:start]}\t{modes[0] if modes else ''}\t{text[end:]}"
    return tuple(counts), text


def _add_unnamed(text: str, add: _Add) -> None:
    """Find counters that have no names, at places where counters are."""
    if match := _BRACKETS.search(text):
        add("", EPOCH, match[1], match[2], match.start(), match.end())
        add("", UNNAMED, match[3], match[4], match.end(), match.end())
        return
    if match := _PAIR.match(text):
        add("", EPOCH, match[1], None, match.start(), match.end())
        add("", UNNAMED, match[2], None, match.end(), match.end())
        return
    if match := _SIZES.search(text):
        value, total = (
            str(int(float(match[place]) * {"": 1, "k": 1e3, "M": 1e6}[match[place + 1]]))
            for place in (1, 3)
        )
        add("", UNNAMED, value, total, *match.span())
        return
    if match := _WORD_COUNT.search(text):
        add("", EPOCH, match[2], None, *match.span(2))
    if match := _BRACKET.search(text):
        value, total = (match[1], match[2]) if match[1] else (match[3], match[4])
        add("", UNNAMED, value, total, *match.span())
        return
    if match := _LEADING.match(text):
        value = match[1] or match[3] or match[5]
        add("", UNNAMED, value, match[2] or match[4], *match.span())


# -- numbers ---------------------------------------------------------------------------------


def _pairs(text: str) -> tuple[tuple[Pair, ...], int]:
    """Return the numbers with names, and the number of words that belong to none."""
    pairs: list[Pair] = []
    words = end = 0
    mode = ""
    for match in _NUMBER.finditer(text):
        gap = text[end : match.start()]
        if match["number"][-1].isalpha() and gap.rstrip("'\" ")[-1:] not in {":", "=", ">"}:
            if not _AFTER_WORD.match(text, match.end()):
                continue  # number of nan iterations
        end = match.end()
        if pairs and gap.strip() == "(" and text[end : end + 1] in ")%":
            pairs[-1] = pairs[-1]._replace(average=match["number"])
            continue
        name = name_before(gap, is_first=not pairs)
        before = gap[: gap.rfind(name)] if name else gap
        if any(map(str.isalpha, before)):
            words += len(_WORDS.findall(before))
            mode = next(iter([*mode_words(before)][-1:]), mode)
        if name and len(pairs) < MAX_PAIRS:
            pairs.append(Pair(name, match["number"], mode=mode))
    return tuple(pairs), words + len(_WORDS.findall(text[end:]))


@lru_cache(maxsize=8192)
def name_before(gap: str, *, is_first: bool = False) -> str:
    """Return the name at the end of the text before a number; "" if there is none.

    >>> name_before(", train acc "), name_before(" s/iter | lm loss: "), name_before(" / ")
    ('train acc', 'lm loss', '')
    """
    text = gap if is_first else _UNITS.sub("\t", gap)
    symbol = _SYMBOL.search(text.rstrip(" :=~>-"))
    if symbol:
        return symbol[0]
    text = text.rstrip(" :=~>-–<([{'\"|→*+±\t")  # noqa: RUF001 - looked for
    piece = _SPLIT.split(text)[-1]
    piece = _balanced(piece).strip(" \t.'\"*#>-_|=/:")
    while shorter := _ENDS_OF_NAMES.sub("", piece):
        if shorter == piece:
            break
        piece = shorter
    words = piece.split()
    if not words or len(piece) > _MAX_NAME or len(words) > _MAX_WORDS:
        return ""
    if not _LETTERS.search(piece) or not _PROSE.isdisjoint(map(str.lower, words)):
        return ""
    return " ".join(words)


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
