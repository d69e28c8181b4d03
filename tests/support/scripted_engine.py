"""Stands in for the Docker SDK's client: has one image, and answers pushes by script."""

from collections.abc import Iterator
from typing import Any

from docker.errors import ImageNotFound  # noqa: TID251 - what the SDK raises

DIGEST = "sha256:" + "ab" * 32
LAYERS = (
    {"status": "The push refers to repository"},
    {"status": "Preparing", "progressDetail": {}, "id": "one"},
    {"status": "Pushing", "progressDetail": {"current": 10, "total": 100}, "id": "one"},
    {"status": "Pushing", "progressDetail": {"current": 7, "total": 20}, "id": "two"},
    {"status": "Pushing", "progressDetail": {"current": 120, "total": 100}, "id": "one"},
    {"status": "Pushed", "progressDetail": {}, "id": "one"},
)
PUSHED = (*LAYERS, {"aux": {"Tag": "1", "Digest": DIGEST, "Size": 7}})


class ScriptedClient:
    """A client whose engine has the image ``rule-runner:1``.

    Attributes
    ----------
    tags, pushes
        What it was asked for, in order.
    """

    def __init__(self, *answers: Any) -> None:
        self.answers: tuple[Any, ...] = answers or PUSHED
        self.tags: list[tuple[str, str]] = []
        self.pushes: list[dict[str, Any]] = []
        self.closed = False
        self.images = self
        self.api = self

    def info(self) -> dict[str, Any]:
        return {}

    def version(self) -> dict[str, str]:
        return {"ApiVersion": "1.41"}

    def get(self, name: str) -> "ScriptedClient":
        if name != "rule-runner:1":
            response = type("Response", (), {"status_code": 404, "reason": "Not Found"})()
            raise ImageNotFound(name, response)
        return self

    def tag(self, name: str, *, tag: str) -> bool:
        self.tags.append((name, tag))
        return True

    def push(self, name: str, **options: Any) -> Iterator[Any]:
        self.pushes.append({"name": name, **options})
        for answer in self.answers:
            if isinstance(answer, Exception):
                raise answer
            yield answer

    def close(self) -> None:
        self.closed = True
