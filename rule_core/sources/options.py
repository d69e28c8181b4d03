"""SourceOptions: what a user may say about the sources of a trial."""

import msgspec


class NameRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The meaning of the tensor names that match a pattern.

    Attributes
    ----------
    pattern
        A regular expression that matches a whole name.
    mode
        ``TRAIN``, ``EVAL``, ``PREDICT`` or ``GLOBAL``; None: as the built-in table says.
    collection
        The collection of the tensors; "" is none; None: as the built-in table says.
    """

    pattern: str
    mode: str | None = None
    collection: str | None = None


class LogPattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pattern of lines in a text log.

    Attributes
    ----------
    name
        The name of the pattern.
    pattern
        A regular expression for a line, with the named group ``step``; every other named group is
        a number of that step, and its name the name of the tensor.
    """

    name: str
    pattern: str


class SourceOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How to read sources; the defaults suit what common writers leave.

    Attributes
    ----------
    names
        Meanings of names; the first that matches applies, before the built-in table.
    log_patterns
        Patterns of lines in text logs, before the built-in ones.
    step_column
        The column, or the word in a line, that counts the steps; ``row`` counts rows; "": as the
        reader decides.
    map
        ``OURS=THEIRS``: the series that is written as THEIRS is called OURS.
    modes
        ``MODE=GLOB``: the mode of the series whose written names match, before `names`.
    """

    names: tuple[NameRule, ...] = ()
    log_patterns: tuple[LogPattern, ...] = ()
    step_column: str = ""
    map: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()

    def over(self, other: "SourceOptions") -> "SourceOptions":
        """Return these options, completed by those of `other` that do not contradict them."""
        return SourceOptions(
            self.names + other.names,
            self.log_patterns + other.log_patterns,
            self.step_column or other.step_column,
            _completed(self.map, other.map),
            _completed(self.modes, other.modes),
        )


def _completed(options: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    """Return options ``LEFT=RIGHT``, and more with other right sides."""
    right_sides = {option.partition("=")[2] for option in options}
    return options + tuple(option for option in more if option.partition("=")[2] not in right_sides)


DEFAULT = SourceOptions()
