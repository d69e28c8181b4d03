"""The Docker engine, as far as images go: finds one, tags it, and pushes it to a registry."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

from urllib3.exceptions import HTTPError

from rule_runner.images.ecr import PUSH_PERMISSIONS, Login
from rule_runner.images.errors import ImageError
from rule_runner.images.uris import ImageUri

if TYPE_CHECKING:
    from docker import DockerClient  # noqa: TID251 - one of the places that talk to an engine

Progress = Callable[[int, int], None]  # bytes pushed, and bytes of all layers seen so far

_REFUSED: Final = ("denied", "not authorized", "unauthorized", "no basic auth", "forbidden")


@contextmanager
def engine() -> Iterator["DockerClient"]:
    """Give a client of the engine that DOCKER_HOST names, by default the one of this machine.

    Raises
    ------
    ImageError
        If none answers.
    """
    import docker  # noqa: PLC0415, TID251 - one of the places that talk to an engine

    with _engine_errors():
        client = docker.from_env()
    with closing(client):
        yield client


@contextmanager
def _engine_errors() -> Iterator[None]:
    """Turn what the engine's client raises into a sentence."""
    from docker.errors import DockerException  # noqa: PLC0415, TID251 - likewise

    try:
        yield
    except (DockerException, HTTPError, OSError) as err:
        if "Permission denied" in str(err):
            msg = (
                "The socket of the Docker engine may not be used by this user. "
                "Become a member of the group docker, or use an engine of your own."
            )
        else:
            msg = f"The Docker engine does not do its work: {err}. Start it, or set DOCKER_HOST."
        raise ImageError(msg) from err


def push(
    client: "DockerClient", image: str, to: ImageUri, login: Login | None, progress: Progress
) -> ImageUri:
    """Push the engine's `image` to a registry; return it by its digest there.

    Parameters
    ----------
    to
        Registry, repository and tag.
    login
        For that registry, and sent to no other; without one the engine's own is used.
    progress
        Called while layers are sent.

    Raises
    ------
    ImageError
        If the engine has no such image, or the registry does not take it.
    """
    if login is not None and login.host != to.host:
        msg = f"Login for {login.host!r} must not go to another registry, got {to.host!r}."
        raise ImageError(msg)
    tag(client, image, to)
    account = {"username": login.username, "password": login.password} if login else None
    digest = None
    layers: dict[str, tuple[int, int]] = {}
    with _engine_errors():
        for answer in client.api.push(
            to.name, tag=to.tag, stream=True, decode=True, auth_config=account
        ):
            if "error" in answer:
                raise ImageError(_refusal(to, str(answer["error"]), ecr=login is not None))
            digest = answer.get("aux", {}).get("Digest", digest)
            if _count(layers, answer):
                done, total = zip(*layers.values(), strict=True)
                progress(sum(done), sum(total))
    if digest is None:
        msg = f"The Docker engine did not say which digest {to.name!r} has now. Push it again."
        raise ImageError(msg)
    return ImageUri(to.host, to.repository, digest=digest)


def tag(client: "DockerClient", image: str, to: ImageUri) -> None:
    """Give the engine's `image` the name that it is pushed by.

    Raises
    ------
    ImageError
        If the engine has no such image.
    """
    from docker.errors import ImageNotFound  # noqa: PLC0415, TID251 - likewise

    with _engine_errors():
        try:
            client.images.get(image).tag(to.name, tag=to.tag)
        except ImageNotFound as err:
            msg = (
                f"The Docker engine has no image {image!r}. "
                "Build one with 'rule-runner docker build', or name another with --image."
            )
            raise ImageError(msg) from err


def _count(layers: dict[str, tuple[int, int]], answer: dict[str, Any]) -> bool:
    """Note how far the layer of an answer is; return whether it says so."""
    detail = answer.get("progressDetail") or {}
    if "current" not in detail or "id" not in answer:
        return False
    done = int(detail["current"])
    layers[answer["id"]] = (done, max(done, int(detail.get("total", 0))))
    return True


def _refusal(to: ImageUri, reason: str, *, ecr: bool) -> str:
    """Return the sentence about a push that did not end well."""
    said = f"Cannot push to {to.name!r}: {reason.strip().rstrip('.')}."
    if not any(one in reason.lower() for one in _REFUSED):
        return said
    if ecr:
        return f"{said} The caller needs {PUSH_PERMISSIONS}."
    return f"{said} Log in with 'docker login {to.host}'."
