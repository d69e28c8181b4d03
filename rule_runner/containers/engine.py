"""Engine: the only place that talks to a Docker engine, or to Podman, which answers alike."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import structlog

from rule_runner.containers.errors import (
    HOST,
    EngineError,
    EngineLostError,
    cause,
    refused,
    unreachable,
)
from rule_runner.containers.plan import Account, ContainerPlan, is_loopback, sdk_arguments

if TYPE_CHECKING:
    from docker import DockerClient  # noqa: TID251 - this is the file
    from docker.models.containers import Container  # noqa: TID251 - likewise

_log: Final = structlog.get_logger()
# Says what a container of ours needs; the engines of 2017 speak it.
OLDEST_API: Final = (1, 25)
_BRIDGES: Final = {"bridge", "podman"}
# What is printed of a building or pulling engine.
Progress = Mapping[str, Any]


class Engine:
    """The engine that this process's environment names.

    Raises
    ------
    EngineError
        If there is none, it may not be used, or it is too old.
    """

    def __init__(self) -> None:
        self._client = _connect()
        with _refusals():
            self._info: dict[str, Any] = self._client.info()
            api = self._client.version()["ApiVersion"]
        if tuple(map(int, api.split("."))) < OLDEST_API:
            self.close()
            oldest = ".".join(map(str, OLDEST_API))
            msg = f"The engine is too old: it speaks API {api}. Install one that speaks {oldest}."
            raise EngineError(msg)

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    @property
    def processors(self) -> int:
        """Return how many processors the engine's machine has."""
        return int(self._info.get("NCPU") or 1)

    @property
    def remote(self) -> bool:
        """Say whether the engine is reached over a network, and sees other files than we do."""
        host = urlsplit(os.environ.get(HOST, ""))
        network = host.scheme in {"tcp", "http", "https", "ssh"}
        return network and not is_loopback(host.hostname or "")

    def account(self, uid: int, gid: int) -> Account:
        """Return how a container runs as the user `uid` and group `gid` of this machine."""
        options = {one.split(",")[0] for one in self._info.get("SecurityOptions") or ()}
        if "name=rootless" in options:  # there root is the user who runs the engine
            return Account("0:0")
        return Account(f"{uid}:{gid}", "host" if "name=userns" in options else None)

    def network(self) -> str:
        """Return the network that containers are in unless another is asked for.

        Raises
        ------
        EngineError
            If the engine has none that leads anywhere.
        """
        with _refusals():
            names = {one.name for one in self._client.networks.list()}
        if not names & _BRIDGES:
            msg = (
                "The engine has no bridge network, and something is to be reached. "
                "Give one that it has: --network host."
            )
            raise EngineError(msg)
        return "bridge"

    def find_image(self, name: str, *, pull: bool) -> None:
        """See that an image is there; get it first if asked to.

        Raises
        ------
        EngineError
            If it is not there, or cannot be pulled.
        """
        from docker.errors import NotFound  # noqa: PLC0415, TID251 - see `_connect`

        with _refusals(f"Image {name!r} cannot be had"):
            if pull:
                self._client.images.pull(name)
            try:
                self._client.images.get(name)
            except NotFound:
                msg = (
                    f"The engine has no image {name!r}. Build it with 'rule-runner docker build "
                    f"--tag {name}', or get it with --pull if a registry has it."
                )
                raise EngineError(msg) from None

    def create(self, plan: ContainerPlan) -> "RunningContainer":
        """Make a container, without starting it.

        Raises
        ------
        EngineError
            If the engine refuses it.
        """
        with _refusals("The engine refuses this container"):
            return RunningContainer(self._client.containers.create(**sdk_arguments(plan)))

    def build(
        self, root: Path, tag: str, arguments: Mapping[str, str], network: str | None
    ) -> Iterator[Progress]:
        """Build the image of the Dockerfile in `root`; yield what the engine tells meanwhile.

        Raises
        ------
        EngineError
            If the engine cannot begin.
        """
        with _refusals("The engine does not build"):
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
    """A container of ours, until `remove`."""

    def __init__(self, container: "Container") -> None:
        self._container = container
        self.name = str(container.name)
        self._frames: Iterator[tuple[bytes | None, bytes | None]] = iter(())

    def start(self) -> None:
        """Start it; its output is heard from the beginning.

        Raises
        ------
        EngineError
            If the engine cannot.
        """
        with _refusals("The engine cannot start this container"):
            self._frames = self._container.attach(stream=True, demux=True)
            self._container.start()

    def output(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Yield pieces of stdout and stderr as they come, until it ends."""
        yield from self._frames

    def wait(self) -> int:
        """Return the exit code, once it has ended.

        Raises
        ------
        EngineLostError
            If the engine goes away before.
        """
        with _losses():
            return int(self._container.wait()["StatusCode"])

    def signal(self, number: int) -> None:
        """Send it a signal; one that has ended takes none."""
        with suppress(EngineError), _refusals():
            self._container.kill(signal.Signals(number).name)

    def out_of_memory(self) -> bool:
        """Say whether a process in it was killed because there was no memory left for it."""
        with _losses():
            self._container.reload()
            return bool(self._container.attrs["State"].get("OOMKilled"))

    def remove(self) -> None:
        """Remove it, running or not."""
        try:
            with _refusals("It cannot be removed"):
                self._container.remove(force=True, v=True)
        except EngineError as err:
            _log.warning("container_left", container=self.name, reason=str(err))


def _connect() -> "DockerClient":
    """Return a client of the engine that the environment names.

    The SDK is imported only where a container is wanted.
    """
    try:
        from docker import DockerClient  # noqa: PLC0415, TID251 - see above
        from docker.errors import DockerException  # noqa: PLC0415, TID251 - likewise
    except ImportError as err:
        msg = f"The Docker SDK cannot be imported: {err}. Install the package 'docker'."
        raise EngineError(msg) from err
    try:
        return DockerClient.from_env(version="auto")
    except (DockerException, OSError, ValueError) as err:
        raise EngineError(unreachable(err)) from err


@contextmanager
def _refusals(what: str = "The engine does not answer as expected") -> Iterator[None]:
    """Turn what the engine refuses into an `EngineError` of one sentence and the remedy."""
    from docker.errors import DockerException  # noqa: PLC0415, TID251 - see `_connect`
    from urllib3.exceptions import HTTPError  # noqa: PLC0415 - it opens a socket when imported

    try:
        yield
    except (DockerException, OSError, HTTPError) as err:
        raise EngineError(refused(what, err)) from err


@contextmanager
def _losses() -> Iterator[None]:
    """Turn an engine that is gone into an `EngineLostError`."""
    from docker.errors import DockerException  # noqa: PLC0415, TID251 - see `_connect`
    from urllib3.exceptions import HTTPError  # noqa: PLC0415 - it opens a socket when imported

    try:
        yield
    except (DockerException, OSError, HTTPError) as err:
        raise EngineLostError(cause(err)) from err
