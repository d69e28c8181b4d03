"""Engine: the client of a Docker engine, or of Podman, which has the same API."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from rule_runner.containers import errors
from rule_runner.containers.plan import ROOT, Account, ContainerPlan, is_loopback, sdk_arguments
from rule_runner.errors import translated
from rule_runner.logs import get_logger
from rule_runner.results.durable_files import Closing

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container

_log: Final = get_logger(__name__)
# The first version with everything that the containers need, from 2017.
OLDEST_API: Final = (1, 25)
_BRIDGES: Final = {"bridge", "podman"}
# A message of the engine during a build or pull.
EngineMessage = Mapping[str, Any]


class Engine(Closing):
    """The engine that the environment of this process names.

    Raises
    ------
    EngineError
        If it cannot be reached, access is denied, or it is too old.
    """

    def __init__(self) -> None:
        self._client = _connect()
        with _refusals():
            self._info: dict[str, Any] = self._client.info()
            api = self._client.version()["ApiVersion"]
        if tuple(map(int, api.split("."))) < OLDEST_API:
            self.close()
            oldest = ".".join(map(str, OLDEST_API))
            raise errors.EngineError(
                f"The engine is too old: it supports API {api}. Install one that supports {oldest}."
            )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    @property
    def processors(self) -> int:
        """Number of processors of the engine's machine."""
        return int(self._info.get("NCPU") or 1)

    @property
    def remote(self) -> bool:
        """Whether the engine is on another machine, with other files."""
        host = urlsplit(os.environ.get(errors.HOST, ""))
        network = host.scheme in {"tcp", "http", "https", "ssh"}
        return network and not is_loopback(host.hostname or "")

    def account(self, uid: int, gid: int) -> Account:
        """Return the account of a container for user `uid` and group `gid` of this machine."""
        options = {option.split(",")[0] for option in self._info.get("SecurityOptions") or ()}
        if "name=rootless" in options:  # root is the user who runs the engine there
            return Account(ROOT)
        return Account(f"{uid}:{gid}", "host" if "name=userns" in options else None)

    def network(self) -> str:
        """Return the default network of containers.

        Raises
        ------
        EngineError
            If the engine has no bridge network.
        """
        with _refusals():
            names = {network.name for network in self._client.networks.list()}
        if not names & _BRIDGES:
            raise errors.EngineError(
                "The engine has no bridge network, and this evaluation needs a network. "
                "Choose one that the engine has: --network host."
            )
        return "bridge"

    def find_image(self, name: str, *, pull: bool) -> None:
        """Check that the engine has an image; pull it first if `pull`.

        Raises
        ------
        EngineError
            If the image is missing, or cannot be pulled.
        """
        from docker.errors import NotFound

        with _refusals(f"Image {name!r} cannot be used"):
            if pull:
                self._client.images.pull(name)
            try:
                self._client.images.get(name)
            except NotFound:
                raise errors.EngineError(
                    f"The engine has no image {name!r}. Build it with 'rule-runner docker build "
                    f"--tag {name}', or pull it from a registry with --pull."
                ) from None

    def create(self, plan: ContainerPlan) -> "RunningContainer":
        """Create a container without starting it.

        Raises
        ------
        EngineError
            If the engine rejects it.
        """
        with _refusals("The engine rejects this container"):
            return RunningContainer(self._client.containers.create(**sdk_arguments(plan)))

    def build(
        self, root: Path, tag: str, arguments: Mapping[str, str], network: str | None
    ) -> Iterator[EngineMessage]:
        """Build the image of the Dockerfile in `root`; yield the messages of the engine.

        Raises
        ------
        EngineError
            If the build cannot start.
        """
        with _refusals("The engine cannot build"):
            yield from self._client.api.build(
                path=str(root),
                tag=tag,
                buildargs=dict(arguments),
                network_mode=network,
                rm=True,
                forcerm=True,
                decode=True,
            )


class RunningContainer:
    """A container, until `remove`."""

    def __init__(self, container: "Container") -> None:
        self._container = container
        self.name = str(container.name)
        self._frames: Iterator[tuple[bytes | None, bytes | None]] = iter(())

    def start(self) -> None:
        """Start it; its output is read from the beginning.

        Raises
        ------
        EngineError
            If the engine cannot start it.
        """
        with _refusals("The engine cannot start this container"):
            self._frames = self._container.attach(stream=True, demux=True)
            self._container.start()

    def output(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Yield parts of stdout and stderr as they arrive, until it ends."""
        yield from self._frames

    def wait(self) -> int:
        """Wait for its end, and return the exit code.

        Raises
        ------
        EngineLostError
            If the connection to the engine is lost before.
        """
        with _losses():
            return int(self._container.wait()["StatusCode"])

    def signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        with suppress(errors.EngineError), _refusals():
            self._container.kill(signal.Signals(number).name)

    def out_of_memory(self) -> bool:
        """Return whether a process in it was killed because it ran out of memory."""
        with _losses():
            self._container.reload()
            return bool(self._container.attrs["State"].get("OOMKilled"))

    def remove(self) -> None:
        """Remove it, running or not."""
        try:
            with _refusals("The container cannot be removed"):
                self._container.remove(force=True, v=True)
        except errors.EngineError as err:
            _log.warning("container_left", container=self.name, reason=str(err))


def _connect() -> "DockerClient":
    """Return a client of the engine that the environment names.

    The SDK is imported only when a container is needed.
    """
    problem, remedy = "The Docker SDK cannot be imported: ", ". Install the package 'docker'."
    with translated(errors.EngineError, ImportError, before=problem, after=remedy):
        from docker import DockerClient
        from docker.errors import DockerException
    causes = DockerException, OSError, ValueError
    with translated(errors.EngineError, *causes, words=errors.unreachable):
        return DockerClient.from_env(version="auto")


def _failures() -> tuple[type[Exception], ...]:
    """Return the errors of the engine's client."""
    from docker.errors import DockerException
    from urllib3.exceptions import HTTPError

    return DockerException, OSError, HTTPError


def _refusals(
    problem: str = "The engine does not answer as expected",
) -> AbstractContextManager[None]:
    """Turn errors of the engine into an `EngineError` of one sentence and the remedy."""
    return translated(errors.EngineError, *_failures(), words=partial(errors.refused, problem))


def _losses() -> AbstractContextManager[None]:
    """Turn the loss of the engine into an `EngineLostError`."""
    return translated(errors.EngineLostError, *_failures(), words=errors.cause)
