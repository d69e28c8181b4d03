"""A registry on this machine, Debian's docker-registry: open to all, or with a login."""

import contextlib
import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

USER = "AWS"
PASSWORD = "123456789012-auth-token"
# The password's bcrypt, as `htpasswd -nbB` writes it.
_HTPASSWD = f"{USER}:$2b$04$oVyLRr5szxOh5E1YWLhESOyr2/B4H1MF2MPSVRo6e1fCp.ycVxyOu\n"
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


@contextlib.contextmanager
def serving(folder: Path, *, login: bool = False) -> Iterator[str]:
    """Run a registry with its data in `folder`; give its host and port."""
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        host = f"127.0.0.1:{probe.getsockname()[1]}"
    (folder / "htpasswd").write_text(_HTPASSWD)
    config: dict[str, object] = {
        "version": "0.1",
        "log": {"level": "info"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "http": {"addr": host, "secret": "of the tests"},
    }
    if login:
        config["auth"] = {"htpasswd": {"realm": "tests", "path": str(folder / "htpasswd")}}
    (folder / "config.yml").write_text(json.dumps(config))  # which is YAML, too
    command = ["docker-registry", "serve", str(folder / "config.yml")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        heard = any("listening on" in line for line in process.stdout)
        # Nobody reads what it says later, but it must be able to say it.
        reader = threading.Thread(target=process.stdout.read)
        reader.start()
        try:
            assert heard, "The registry ended by itself."
            yield host
        finally:
            process.terminate()
            reader.join()


def digest(host: str, repository: str, tag: str) -> str:
    """Return what an open registry calls the manifest of a tag."""
    address = f"http://{host}/v2/{repository}/manifests/{tag}"
    request = Request(address, method="HEAD", headers={"Accept": _MANIFEST})
    with urlopen(request) as answer:
        return str(answer.headers["Docker-Content-Digest"])
