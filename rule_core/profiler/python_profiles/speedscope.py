"""SpeedscopeProfile: the functions in a file of speedscope, such as py-spy's.

Stacks come as samples or as events that open and close frames. Format:
https://www.speedscope.app/file-format-schema.json.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from rule_core.exceptions import CorruptFileError
from rule_core.profiler.files.whole_text import decoded
from rule_core.profiler.python_profiles.measured_code import CodePlace, MeasuredCode

Amounts = defaultdict[CodePlace, float]
Places = Sequence[CodePlace | None]
Opened = dict[CodePlace, tuple[int, float]]  # how often, and since when
WHAT: Final = "a profile of speedscope"
SCHEMA: Final = b"speedscope.app/file-format-schema.json"
# The unit of amounts, and how many of them a unit of the file is.
_UNITS: Final = MappingProxyType(
    {
        "nanoseconds": ("s", 1e-9),
        "microseconds": ("s", 1e-6),
        "milliseconds": ("s", 1e-3),
        "seconds": ("s", 1.0),
        "bytes": ("bytes", 1.0),
        "none": ("", 1.0),
    }
)
_DEEPEST: Final = 100_000  # frames of a stack
_SELF: Final = "[self]"  # a frame of pyinstrument for the time of the function around it


class _Frame(msgspec.Struct, gc=False):
    name: str
    file: str | None = None
    line: int | None = None


class _Shared(msgspec.Struct, gc=False):
    frames: list[_Frame]


class _SpeedscopeDocument(msgspec.Struct, gc=False):
    shared: _Shared
    profiles: list[msgspec.Raw]


class _Event(msgspec.Struct, gc=False):
    type: Literal["O", "C"]
    frame: int
    at: float


class _Profile(msgspec.Struct, gc=False, rename="camel"):
    type: Literal["evented", "sampled"]
    name: str = ""
    unit: str = "none"
    end_value: float = 0.0
    events: list[_Event] = msgspec.field(default_factory=list)
    samples: list[msgspec.Raw] = msgspec.field(default_factory=list)
    weights: list[float] = msgspec.field(default_factory=list)


def parse_speedscope(name: str, text: bytes, *, lines: bool = False) -> Iterator[MeasuredCode]:
    """Yield what each profile of a file, usually a thread, says about functions.

    Parameters
    ----------
    name
        The file's name in messages.
    lines
        Whether to distinguish the lines of a function.

    Raises
    ------
    CorruptFileError
        If it is no such file.
    """
    document = decoded(name, text, _SpeedscopeDocument, WHAT)
    places = [_place(frame, lines=lines) for frame in document.shared.frames]
    for raw in document.profiles:
        profile = decoded(name, raw, _Profile, WHAT)
        if profile.unit not in _UNITS:
            raise CorruptFileError(name, WHAT, f"one with the unit {profile.unit!r}")
        unit, factor = _UNITS[profile.unit]
        measure = _of_stacks if profile.type == "sampled" else _of_events
        try:
            own, whole = measure(profile, places)
        except (ValueError, RecursionError) as err:
            raise CorruptFileError(name, WHAT, str(err).rstrip(".")) from err
        yield MeasuredCode(profile.name, unit, _scaled(own, factor), _scaled(whole, factor))


def _place(frame: _Frame, *, lines: bool) -> CodePlace | None:
    if frame.name == _SELF and not frame.file:
        return None
    line = frame.line if lines and frame.line is not None else 0
    return CodePlace(frame.file or "", line, frame.name)


def _scaled(amounts: Mapping[CodePlace, float], factor: float) -> dict[CodePlace, float]:
    return {place: amount * factor for place, amount in amounts.items()}


def _amounts_of_stacks(profile: _Profile) -> dict[bytes, float]:
    """Return the weight of each distinct stack, still as text."""
    weights = profile.weights or [1.0] * len(profile.samples)
    if len(weights) != len(profile.samples):
        raise ValueError(f"{len(profile.samples)} samples with {len(weights)} weights")
    amounts: defaultdict[bytes, float] = defaultdict(float)
    for stack, weight in zip(profile.samples, weights, strict=True):
        amounts[bytes(stack)] += weight
    return amounts


def _of_stacks(profile: _Profile, places: Places) -> tuple[Amounts, Amounts]:
    own: Amounts = defaultdict(float)
    whole: Amounts = defaultdict(float)
    for text, amount in _amounts_of_stacks(profile).items():
        frames = msgspec.json.decode(text, type=list[int])
        if not math.isfinite(amount) or amount < 0:
            raise ValueError(f"a weight of {amount}")
        called = (places[_checked(frame, places)] for frame in frames)
        stack = [place for place in called if place is not None]
        if stack:
            own[stack[-1]] += amount
        for place in set(stack):  # once, however often a function calls itself
            whole[place] += amount
    return own, whole


def _of_events(profile: _Profile, places: Places) -> tuple[Amounts, Amounts]:
    own: Amounts = defaultdict(float)
    whole: Amounts = defaultdict(float)
    opened: Opened = {}
    stack: list[int] = []
    now = -math.inf
    for event in [*profile.events, None]:
        at = max(profile.end_value, now) if event is None else event.at
        if at < now or not math.isfinite(at):
            raise ValueError(f"an event at {at} after one at {now}")
        innermost = next(filter(None, (places[frame] for frame in reversed(stack))), None)
        if innermost is not None:
            own[innermost] += at - now
        now = at
        if event is None:
            for frame in reversed(stack):
                _close(places[frame], now, opened, whole)
            break
        place = places[_checked(event.frame, places)]
        if event.type == "O":
            if len(stack) >= _DEEPEST:
                raise ValueError(f"a stack of more than {_DEEPEST} frames")
            stack.append(event.frame)
            if place is not None:
                count, since = opened.get(place, (0, now))
                opened[place] = count + 1, since
        elif stack and stack.pop() == event.frame:
            _close(place, now, opened, whole)
        else:
            raise ValueError(
                f"an event that closes frame {event.frame}, which is not the innermost one"
            )
    return own, whole


def _close(place: CodePlace | None, now: float, opened: Opened, whole: Amounts) -> None:
    if place is None:
        return
    count, since = opened.pop(place)
    if count > 1:
        opened[place] = count - 1, since
    else:
        whole[place] += now - since


def _checked(frame: int, places: Places) -> int:
    if not 0 <= frame < len(places):
        raise ValueError(f"a stack with frame {frame} of {len(places)}")
    return frame
