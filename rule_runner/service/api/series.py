"""Series: the curves of a trial."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from rule_runner.service.api.queries import checked_query, trial_of
from rule_runner.service.curves.series import MAX_POINTS, POINTS, SeriesQuery
from rule_runner.service.responses import MsgspecResponse, service_of


class SeriesParams(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query of a trial's curves; see `SeriesQuery`. `names` are separated by commas."""

    names: Annotated[str, Meta(max_length=10_000)] = ""
    after: int | None = None
    points: Annotated[int, Meta(ge=2, le=MAX_POINTS)] = POINTS


def trial_series(request: Request) -> Response:
    """Answer ``GET /api/v1/trials/{id}/series``."""
    query = checked_query(request.query_params, SeriesParams)
    with service_of(request).index() as index:
        trial = trial_of(index, request.path_params["trial"])
    names = tuple(filter(None, query.names.split(",")))
    page = service_of(request).series.page(trial, SeriesQuery(names, query.after, query.points))
    return MsgspecResponse(page)
