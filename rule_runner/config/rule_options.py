"""Parses the options that name rules, parameters and modes."""

import re
from collections.abc import Sequence
from typing import Final

from rule_runner.config.defaults import RuleMode
from rule_runner.config.request import RuleRequest
from rule_runner.errors import UsageError

_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def parse_requests(rules: Sequence[str], sources: Sequence[str]) -> list[RuleRequest]:
    """Return the rules that ``--rule [ID=]NAME`` and ``--source [ID=]FILE`` request.

    A name and a file with the same ID are one rule: the class of that name in that file. So are
    a single name and a single file without IDs.

    Raises
    ------
    UsageError
        If two rules have one ID, or it is ambiguous which name belongs to which file.
    """
    names = [_split_id(text, "--rule") for text in rules]
    files = [_split_id(text, "--source") for text in sources]
    for pairs, option in ((names, "--rule"), (files, "--source")):
        _check_ids([rule_id for rule_id, _ in pairs], option)
    free_names = sum(rule_id is None for rule_id, _ in names)
    free_files = sum(rule_id is None for rule_id, _ in files)
    if free_names and free_files and (free_names, free_files) != (1, 1):
        raise UsageError(
            f"{free_names} rules and {free_files} source files have no ID, so which "
            "belong together is ambiguous. Give IDs: --rule ID=NAME --source ID=FILE."
        )
    name_of, file_of = dict(names), dict(files)
    requests = [RuleRequest(rule_id, name, file_of.get(rule_id)) for rule_id, name in names]
    return requests + [
        RuleRequest(rule_id, None, file) for rule_id, file in files if rule_id not in name_of
    ]


def _split_id(text: str, option: str) -> tuple[str | None, str]:
    """Return the ID, or None, and the text behind it.

    >>> _split_id("first=AllZero", "--rule"), _split_id("dir/a=b.py", "--source")
    (('first', 'AllZero'), (None, 'dir/a=b.py'))
    """
    rule_id, equals, rest = text.partition("=")
    # A path may contain the sign; the name of a rule cannot.
    if not equals or (option == "--source" and not _ID.fullmatch(rule_id)):
        rule_id, rest = "", text
    if not rest:
        raise UsageError(f"Option {option} needs a value after {text!r}.")
    return rule_id or None, rest


def _check_ids(ids: Sequence[str | None], option: str) -> None:
    for rule_id in ids:
        if rule_id is not None and ids.count(rule_id) > 1:
            raise UsageError(f"ID {rule_id!r} is given to two {option} options. IDs must differ.")


def parse_parameters(texts: Sequence[str], ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return parameters by ID of the rule job, from ``-p [ID.]key=value``.

    Raises
    ------
    UsageError
        If two rule jobs have one ID, or a text is malformed or a duplicate, or has no ID although
        there are several rules.
    """
    for rule_id in ids:
        if ids.count(rule_id) > 1:
            raise UsageError(
                f"Two rule jobs are called {rule_id!r}. Give IDs: --rule first={rule_id}."
            )
    parameters: dict[str, dict[str, str]] = {rule_id: {} for rule_id in ids}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"A parameter must be key=value, got {text!r}.")
        rule_id, name = _owner(key, ids)
        if name in parameters[rule_id]:
            raise UsageError(f"Parameter {name!r} of rule {rule_id!r} is given twice.")
        parameters[rule_id][name] = value
    return parameters


def _owner(key: str, ids: Sequence[str]) -> tuple[str, str]:
    """Return the rule job that a parameter goes to, and the parameter's own name."""
    for rule_id in sorted(ids, key=len, reverse=True):
        if key.startswith(f"{rule_id}.") and len(key) > len(rule_id) + 1:
            return rule_id, key[len(rule_id) + 1 :]
    if len(ids) == 1:
        return ids[0], key
    raise UsageError(
        f"Parameter {key!r} does not name its rule. "
        f"Write ID.{key.rpartition('.')[2]}=value with an ID of {', '.join(map(repr, ids))}."
    )


def parse_modes(texts: Sequence[str], ids: Sequence[str]) -> dict[str, RuleMode]:
    """Return modes by ID of the rule job, from ``--mode [ID=]enforce|observe``.

    A mode without an ID is that of all rule jobs that are not named.

    Raises
    ------
    UsageError
        If a text is malformed or a duplicate, or names no rule job.
    """
    modes: dict[str | None, RuleMode] = {}
    for text in texts:
        before, equals, word = text.rpartition("=")
        rule_id = before if equals else None
        if rule_id is not None and rule_id not in ids:
            from rule_core.rules.params import did_you_mean

            hint, names = did_you_mean(rule_id, ids), ", ".join(map(repr, ids))
            raise UsageError(
                f"Mode {text!r} names no rule of this evaluation.{hint} Its IDs: {names}."
            )
        if rule_id in modes:
            whose = "all rules" if rule_id is None else f"rule {rule_id!r}"
            raise UsageError(f"The mode of {whose} is given twice.")
        modes[rule_id] = _mode(word)
    default = modes.get(None, RuleMode.ENFORCE)
    return {rule_id: modes.get(rule_id, default) for rule_id in ids}


def is_of_series(mode: str) -> bool:
    """Return whether a ``--mode`` is ``MODE=GLOB``, not a perhaps misspelt one of a rule.

    >>> is_of_series("eval=val_*"), is_of_series("eval=observe"), is_of_series("loss=obsreve")
    (True, False, False)
    """
    from rule_core.rules.params import did_you_mean

    return "=" in mode and not did_you_mean(mode.rpartition("=")[2], RuleMode)


def _mode(word: str) -> RuleMode:
    try:
        return RuleMode(word)
    except ValueError:
        raise UsageError(f"A mode must be 'enforce' or 'observe', got {word!r}.") from None
