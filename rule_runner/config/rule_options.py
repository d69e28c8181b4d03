"""Which rules the command line asks for, with their parameters and modes: texts of its options."""

import re
from collections.abc import Sequence
from typing import Final

from rule_runner.config.model import RuleMode
from rule_runner.config.request import RuleRequest
from rule_runner.errors import UsageError

_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def parse_requests(rules: Sequence[str], sources: Sequence[str]) -> list[RuleRequest]:
    """Return the rules that ``--rule [ID=]NAME`` and ``--source [ID=]FILE`` ask for.

    A name and a file with the same ID are one rule: the class of that name in that file. So are
    one name and one file that have no ID.

    Raises
    ------
    UsageError
        If an ID is given twice, or it cannot be told what belongs together.
    """
    names = [_split_id(text, "--rule") for text in rules]
    files = [_split_id(text, "--source") for text in sources]
    _check_ids([one for one, _ in names], "--rule")
    _check_ids([one for one, _ in files], "--source")
    free_names = [name for one, name in names if one is None]
    free_files = [file for one, file in files if one is None]
    if free_names and free_files and (len(free_names), len(free_files)) != (1, 1):
        msg = (
            f"{len(free_names)} rules and {len(free_files)} source files have no ID: it cannot be "
            "told which belong together. Give IDs: --rule ID=NAME --source ID=FILE."
        )
        raise UsageError(msg)
    file_of = dict(files)
    found = [RuleRequest(one, name, file_of.get(one)) for one, name in names]
    taken = {one for one, _ in names}
    found += [RuleRequest(one, None, file) for one, file in files if one not in taken]
    return found


def _split_id(text: str, option: str) -> tuple[str | None, str]:
    """Return the ID, or None, and what stands behind it.

    >>> _split_id("first=AllZero", "--rule"), _split_id("dir/a=b.py", "--source")
    (('first', 'AllZero'), (None, 'dir/a=b.py'))
    """
    one, equals, rest = text.partition("=")
    # A path may hold the sign; the name of a rule cannot.
    if not equals or (option == "--source" and not _ID.fullmatch(one)):
        one, rest = "", text
    if not rest:
        msg = f"Option {option} needs a value behind {text!r}."
        raise UsageError(msg)
    return one or None, rest


def _check_ids(ids: Sequence[str | None], option: str) -> None:
    for one in ids:
        if one is not None and ids.count(one) > 1:
            msg = f"ID {one!r} is given to two {option} options. IDs must differ."
            raise UsageError(msg)


def parse_parameters(texts: Sequence[str], ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return parameters by ID of the rule job, from ``-p [ID.]key=value``.

    Raises
    ------
    UsageError
        If a text is not of that form, has no ID where there are several rules, or is given twice.
    """
    found: dict[str, dict[str, str]] = {one: {} for one in ids}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            msg = f"A parameter must be key=value, got {text!r}."
            raise UsageError(msg)
        one, name = _owner(key, ids)
        if name in found[one]:
            msg = f"Parameter {name!r} of rule {one!r} is given twice."
            raise UsageError(msg)
        found[one][name] = value
    return found


def _owner(key: str, ids: Sequence[str]) -> tuple[str, str]:
    """Return the rule job that a parameter goes to, and the parameter's own name."""
    for one in sorted(ids, key=len, reverse=True):
        if key.startswith(f"{one}.") and len(key) > len(one) + 1:
            return one, key[len(one) + 1 :]
    if len(ids) == 1:
        return ids[0], key
    msg = (
        f"Parameter {key!r} does not say which rule it goes to. "
        f"Write ID.{key.rpartition('.')[2]}=value with an ID of {', '.join(map(repr, ids))}."
    )
    raise UsageError(msg)


def parse_modes(texts: Sequence[str], ids: Sequence[str]) -> dict[str, RuleMode]:
    """Return modes by ID of the rule job, from ``--mode [ID=]enforce|observe``.

    A mode without an ID is that of all rule jobs that are not named.

    Raises
    ------
    UsageError
        If a text is not of that form, names no rule job, or a mode is given twice.
    """
    found: dict[str | None, RuleMode] = {}
    for text in texts:
        before, equals, word = text.rpartition("=")
        one = before if equals else None
        if one is not None and one not in ids:
            from rule_core.rules.params import did_you_mean

            known = ", ".join(map(repr, ids))
            hint = did_you_mean(one, ids)
            msg = f"Mode {text!r} is for no rule of this evaluation.{hint} Its IDs: {known}."
            raise UsageError(msg)
        if one in found:
            whose = "all rules" if one is None else f"rule {one!r}"
            msg = f"The mode of {whose} is given twice."
            raise UsageError(msg)
        found[one] = _mode(word)
    return {one: found.get(one, found.get(None, RuleMode.ENFORCE)) for one in ids}


def _mode(word: str) -> RuleMode:
    try:
        return RuleMode(word)
    except ValueError:
        msg = f"A mode must be 'enforce' or 'observe', got {word!r}."
        raise UsageError(msg) from None
