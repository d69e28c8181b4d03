"""Series: the curves of a trial over steps, and those of its profile over time."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from rule_runner.service.api.queries import checked_query, trial_of
from rule_runner.service.curves.series import MAX_POINTS, POINTS, SeriesCache, SeriesQuery
from rule_runner.service.responses import MsgspecResponse, service_of


class SeriesParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query of a trial's curves; see `SeriesQuery`. `names` are separated by commas."""

    names: Annotated[str, Meta(max_length=10_000)] = ""
    after: int | None = None
    points: Annotated[int, Meta(ge=2, le=MAX_POINTS)] = POINTS


def trial_series(request: Request) -> Response:
    """Answer ``GET /api/v1/trials/{id}/series``."""
    return _curves(request, service_of(request).series)


def trial_profile(request: Request) -> Response:
    """Answer ``GET /api/v1/trials/{id}/profile``; `after` is in milliseconds since the epoch."""
    return _curves(request, service_of(request).profiles)


def _curves(request: Request, cache: SeriesCache) -> Response:
    query = checked_query(request.query_params, SeriesParams)
    with service_of(request).index() as index:
        trial = trial_of(index, request.path_params["trial"])
    names = tuple(filter(None, query.names.split(",")))
    page = cache.page(trial, SeriesQuery(names, query.after, query.points))
    return MsgspecResponse(page)
