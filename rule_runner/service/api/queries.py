"""Queries: which trials an address means, and how to list them."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException

from rule_core.rules.params import did_you_mean
from rule_runner.index.reader import ORDERS, IndexReader
from rule_runner.index.records import TrialFilter, TrialRecord

_UNKNOWN: Final = re.compile(r"unknown field `(.*?)`")
_DIGITS: Final = 18  # of the number of a trial
_LARGEST: Final = 1_000_000_000  # offset
T = TypeVar("T", bound=msgspec.Struct)


class TrialQuery(TrialFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which trials to list, in which order: the query of ``/trials`` and ``/api/v1/trials``.

    Attributes
    ----------
    text, state, outcome, rule, rule_outcome, severity
        As in `TrialFilter`.
    sort
        One of `ORDERS`.
    page
        The number of the page, from 1.
    limit
        Trials of a page.
    offset
        Trials to leave out before the first page.
    """

    sort: Annotated[str, Meta(extra_json_schema={"enum": [*ORDERS]})] = "path"
    page: Annotated[int, Meta(ge=1, le=_LARGEST)] = 1
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    offset: Annotated[int, Meta(ge=0, le=_LARGEST)] = 0

    @property
    def first(self) -> int:
        """How many trials come before those to list."""
        return self.offset + (self.page - 1) * self.limit


def trial_query(params: QueryParams) -> TrialQuery:
    """Return the query of an address; fields without a value are unset.

    Raises
    ------
    HTTPException
        If a field is misspelt, given twice or has an impossible value.
    """
    query = checked_query(params, TrialQuery)
    if query.sort not in ORDERS:
        hint = did_you_mean(query.sort, ORDERS) or f" Known are: {', '.join(ORDERS)}."
        raise HTTPException(
            400, f"Query field 'sort' has an unknown order, got {query.sort!r:.100}.{hint}"
        )
    return query


def checked_query(params: QueryParams, kind: type[T]) -> T:
    """Return the fields of an address as a struct; fields without a value are unset.

    Raises
    ------
    HTTPException
        If a field is misspelt, given twice or has an impossible value.
    """
    fields = {name: value for name, value in params.multi_items() if value}
    repeated = [name for name in params if len(params.getlist(name)) > 1]
    if repeated:
        raise HTTPException(400, f"Query field {repeated[0]!r:.100} is given more than once.")
    query = converted(fields, kind, "query")
    if nulls := [name for name in fields if getattr(query, name) is None]:
        raise HTTPException(400, f"Query field {nulls[0]!r} cannot be null. Leave it out.")
    return query


def converted(raw: Mapping[str, object], kind: type[T], origin: str) -> T:
    """Return a struct from parsed fields.

    Raises
    ------
    HTTPException
        If they are not valid; `origin` names where they are from.
    """
    try:
        return msgspec.convert(raw, kind, strict=False)
    except (msgspec.ValidationError, ValueError) as err:
        message = str(err)
        unknown = _UNKNOWN.search(message)
        hint = did_you_mean(unknown[1], kind.__struct_fields__) if unknown else ""
        raise HTTPException(400, f"The {origin} is not valid: {message:.500}.{hint}") from err


def is_number(text: str) -> bool:
    """Return whether a text may be the ID of a trial."""
    return text.isdecimal() and text.isascii() and len(text) <= _DIGITS


def trial_of(index: IndexReader, trial_id: str) -> TrialRecord:
    """Return the trial with an ID from a request.

    Raises
    ------
    HTTPException
        If there is none.
    """
    record = index.trial(int(trial_id)) if is_number(trial_id) else None
    if record is None:
        raise HTTPException(
            404, f"There is no trial {trial_id:.20}. The table of trials has those that are known."
        )
    return record
