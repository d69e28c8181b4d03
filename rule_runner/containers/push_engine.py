"""PushingEngine: tags an image and pushes it to a registry."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rule_runner.containers.docker_engine import Engine
from rule_runner.containers.ecr import PUSH_PERMISSIONS, Login
from rule_runner.containers.errors import EngineError, engine_message
from rule_runner.errors import ImageError
from rule_runner.images.uri import ImageUri

PushProgress = Callable[[int, int], None]  # bytes pushed, and bytes of all known layers

_NOT_FOUND: Final = 404
_DENIED: Final = ("denied", "not authorized", "unauthorized", "no basic auth", "forbidden")


class PushingEngine(Engine):
    """An engine that pushes images."""

    def push(
        self, image: str, to: ImageUri, login: Login | None, progress: PushProgress
    ) -> ImageUri:
        """Push the engine's `image` to a registry; return its URI with the digest.

        Parameters
        ----------
        to
            Registry, repository and tag.
        login
            Credentials for that registry only; without them the engine uses its own.
        progress
            Called while layers are pushed.

        Raises
        ------
        ImageError
            If the engine does not have the image, or the registry rejects it.
        EngineError
            If the engine fails.
        """
        if login is not None and login.host != to.host:
            msg = f"Login for {login.host!r} must not go to another registry, got {to.host!r}."
            raise ImageError(msg)
        sdk_image = self.find(image)
        account = {"username": login.username, "password": login.password} if login else None
        status = _PushStatus()
        with _failures(f"The engine cannot push to {to.name!r}"):
            sdk_image.tag(to.name, tag=to.tag)
            for answer in self._client.api.push(
                to.name, tag=to.tag, stream=True, decode=True, auth_config=account
            ):
                if "error" in answer:
                    raise ImageError(_refusal(to, str(answer["error"]), ecr=login is not None))
                if status.update(answer):
                    progress(*status.size)
        if status.digest is None:
            msg = f"The engine did not report the digest of {to.name!r}. Push it again."
            raise ImageError(msg)
        return ImageUri(to.host, to.repository, digest=status.digest)

    def find(self, image: str) -> Any:
        """Return the engine's `image` as an object of the SDK.

        Raises
        ------
        ImageError
            If the engine does not have it.
        EngineError
            If the engine fails.
        """
        with _failures(f"The engine cannot look up {image!r}"):
            try:
                return self._client.images.get(image)
            except OSError as err:  # the base class of the SDK's HTTP errors
                if getattr(err, "status_code", None) != _NOT_FOUND:
                    raise
                msg = (
                    f"The engine has no image {image!r}. Build one with "
                    f"'rule-runner docker build', or choose another with --image."
                )
                raise ImageError(msg) from err


class _PushStatus:
    """The status of a push by the messages of the engine.

    Attributes
    ----------
    digest
        Digest of the image in the registry, once it is pushed.
    """

    def __init__(self) -> None:
        self.digest: str | None = None
        self._layers: dict[str, tuple[int, int]] = {}  # bytes pushed and total bytes by layer

    @property
    def size(self) -> tuple[int, int]:
        """Number of bytes pushed, and of all known layers."""
        done, total = zip(*self._layers.values(), strict=True)
        return sum(done), sum(total)

    def update(self, answer: dict[str, Any]) -> bool:
        """Record a message; return whether it is about the progress of a layer."""
        self.digest = (answer.get("aux") or {}).get("Digest", self.digest)
        detail = answer.get("progressDetail") or {}
        if "current" not in detail or "id" not in answer:
            return False
        done = int(detail["current"])
        self._layers[answer["id"]] = (done, max(done, int(detail.get("total", 0))))
        return True


@contextmanager
def _failures(problem: str) -> Iterator[None]:
    """Turn errors of the engine's client into an `EngineError`."""
    from urllib3.exceptions import HTTPError

    try:
        yield
    except (OSError, HTTPError) as err:
        msg = f"{problem}: {engine_message(err)}"
        raise EngineError(msg) from err


def _refusal(to: ImageUri, reason: str, *, ecr: bool) -> str:
    """Return the message about a registry that rejects an image."""
    text = f"Cannot push to {to.name!r}: {reason.strip().rstrip('.')}."
    if not any(text in reason.lower() for text in _DENIED):
        return text
    if ecr:
        return f"{text} The caller needs {PUSH_PERMISSIONS}."
    return f"{text} Log in with 'docker login {to.host}'."
