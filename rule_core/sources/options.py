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
    """

    names: tuple[NameRule, ...] = ()
    log_patterns: tuple[LogPattern, ...] = ()


DEFAULT = SourceOptions()
