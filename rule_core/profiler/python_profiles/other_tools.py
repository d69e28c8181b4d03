"""Profiles of Python that other tools wrote: speedscope's form, which py-spy has, and scalene's."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Final, NamedTuple

from rule_core.profiler.files.chunks import TimelineFaultError, start_of_text
from rule_core.profiler.files.file_problems import lasting_reason
from rule_core.profiler.files.one_file import one_file
from rule_core.profiler.files.whole_text import is_json_name, whole_text
from rule_core.profiler.python_profiles import scalene, speedscope
from rule_core.profiler.python_profiles.measured_code import CodePlace, MeasuredCode
from rule_core.profiler.python_profiles.reader import ProblemList, usable
from rule_core.profiler.python_profiles.scalene import ScaleneProfile, ScaleneUse, parse_scalene
from rule_core.profiler.python_profiles.speedscope import parse_speedscope
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError, TrialStore

SPEEDSCOPE: Final = "speedscope"
SCALENE: Final = "scalene"
_MOST_KEYS: Final = 20_000  # listed to find files
_MOST_SNIFFED: Final = 1_000  # files that are looked into


class ToolProfile(NamedTuple):
    """A file: `SPEEDSCOPE` or `SCALENE`, and its key."""

    tool: str
    key: str


class FunctionAmounts(NamedTuple):
    """Functions or lines with their cost in one unit.

    Attributes
    ----------
    unit
        ``s``, ``bytes``, or "" for counts.
    total
        What all took in themselves.
    rows
        Place, own amount, and amount with callees; by place.
    """

    unit: str
    total: float
    rows: list[tuple[CodePlace, float, float]]


class ToolProfiles(NamedTuple):
    """The sum of several profiles.

    Attributes
    ----------
    read
        The files.
    threads
        The names of the profiles in files of speedscope, usually threads.
    elapsed_s, peak_mb
        The sum of the times of programs under scalene, and the largest of their memory.
    amounts
        Of files of speedscope, by unit.
    uses
        Of files of scalene.
    problems
        Why files were left out, by key.
    """

    read: list[ToolProfile]
    threads: list[str]
    elapsed_s: float
    peak_mb: float
    amounts: list[FunctionAmounts]
    uses: list[ScaleneUse]
    problems: dict[str, str]


def is_profile_name(key: str) -> bool:
    """Return whether a profile may have such a name.

    >>> is_profile_name("run.speedscope"), is_profile_name("train.py")
    (True, False)
    """
    return is_json_name(key) or _is_named_speedscope(key)


def _is_named_speedscope(key: str) -> bool:
    return ".speedscope" in key.rpartition("/")[2]


def tool_profiles(store: TrialStore) -> tuple[TrialStore, list[ToolProfile]]:
    """Return the profiles in a folder, or the one that a path means, and the store of their keys.

    Raises
    ------
    ObjectNotFoundError
        If the folder does not exist.
    StorageUnavailableError
        If the store does not answer.
    """
    folder, only = one_file(store, is_profile_name)
    keys = [only] if only else islice(folder.list_keys(""), _MOST_KEYS)
    candidates = islice(filter(is_profile_name, keys), _MOST_SNIFFED)
    tools = ((_tool_of(folder, key), key) for key in candidates)
    return folder, [ToolProfile(tool, key) for tool, key in tools if tool]


def _tool_of(store: TrialStore, key: str) -> str:
    try:
        text = start_of_text(store, key)
    except (ObjectNotFoundError, StorageUnavailableError, TimelineFaultError) as err:
        lasting_reason(err)
        text = b""
    if speedscope.SCHEMA in text or _is_named_speedscope(key):
        return SPEEDSCOPE
    return SCALENE if text.startswith(b"{") and scalene.MARK in text else ""


def read_tool_profiles(
    store: TrialStore, profiles: Iterable[ToolProfile], *, lines: bool = False
) -> ToolProfiles:
    """Return the sum of profiles.

    Parameters
    ----------
    store
        Location of the files.
    lines
        Whether to distinguish the lines of a function.

    Raises
    ------
    TrialFileError, ObjectNotFoundError, StorageUnavailableError
        The error of the first file, if all files are unusable.
    """
    tools = {profile.key: profile.tool for profile in profiles}
    problems = ProblemList()

    def load(key: str) -> list[MeasuredCode] | ScaleneProfile:
        text = whole_text(store, key)
        if tools[key] == SPEEDSCOPE:
            return list(parse_speedscope(key, text, lines=lines))
        return parse_scalene(key, text, lines=lines)

    contents = usable(tools, load, problems)
    programs = [content for content in contents.values() if isinstance(content, ScaleneProfile)]
    codes = (content for content in contents.values() if not isinstance(content, ScaleneProfile))
    measured = [*chain.from_iterable(codes)]
    return ToolProfiles(
        [ToolProfile(tools[key], key) for key in contents],
        [code.thread for code in measured],
        sum((program.elapsed_s for program in programs), 0.0),
        max((program.peak_mb for program in programs), default=0.0),
        [*_amounts(measured)],
        _summed(use for program in programs for use in program.uses),
        problems.texts,
    )


def _amounts(measured: Iterable[MeasuredCode]) -> Iterator[FunctionAmounts]:
    own: defaultdict[str, defaultdict[CodePlace, float]] = defaultdict(lambda: defaultdict(float))
    whole: defaultdict[str, defaultdict[CodePlace, float]] = defaultdict(lambda: defaultdict(float))
    for code in measured:
        for sums, amounts in ((own, code.own), (whole, code.whole)):
            for place, amount in amounts.items():
                sums[code.unit][place] += amount
    for unit, amounts in sorted(own.items(), reverse=True):  # seconds first
        rows = [
            (place, amounts.get(place, 0.0), amount)
            for place, amount in sorted(whole[unit].items())
        ]
        yield FunctionAmounts(unit, sum(amounts.values()), rows)


def _sum_of(first: ScaleneUse, second: ScaleneUse) -> ScaleneUse:
    sums = [before + after for before, after in zip(first[1:], second[1:], strict=True)]
    peak_mb = max(first.peak_mb, second.peak_mb)
    return ScaleneUse(first.place, *sums)._replace(peak_mb=peak_mb)


def _summed(uses: Iterable[ScaleneUse]) -> list[ScaleneUse]:
    """Return one use of each place; peaks are those of one program."""
    by_place: dict[CodePlace, ScaleneUse] = {}
    for use in uses:
        other = by_place.get(use.place)
        by_place[use.place] = use if other is None else _sum_of(other, use)
    return [by_place[place] for place in sorted(by_place)]
