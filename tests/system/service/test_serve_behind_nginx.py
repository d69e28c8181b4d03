"""`serve` behind a real nginx: as docs/serve.md configures it, and with nginx's defaults."""

import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from serving import PATIENCE_S, Serving, write

from rule_runner.service.access.tokens import Role, TokenFile

NGINX: Final = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
DOCUMENT: Final = Path(__file__).parents[3] / "docs" / "serve.md"
ORIGIN: Final = "http://runs.example"
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


def documented(url: str) -> str:
    """Return the location in the document, for a service at another address."""
    (location,) = re.findall(r"```nginx\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return str(location).replace("http://127.0.0.1:8420", url)


@contextmanager
def behind_nginx(folder: Path, location: str) -> Iterator[str]:
    """Run nginx with a location inside the block; the value is its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    temporary = " ".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    configuration = folder / "nginx.conf"
    configuration.write_text(
        f"daemon off; master_process off; pid {folder}/pid; error_log stderr;\n"
        f"events {{}}\nhttp {{ access_log off; {temporary}\n"
        f"server {{ listen 127.0.0.1:{port};\n{location}\n}} }}\n"
    )
    command = [str(NGINX), "-p", str(folder), "-c", str(configuration), "-e", "stderr"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            assert process.poll() is None, process.communicate()[1]
            try:
                socket.create_connection(("127.0.0.1", port), PATIENCE_S).close()
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


class Unredirected(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect as it is."""

    def redirect_request(self, *_: object) -> None:
        return None


def status_of(url: str, data: bytes | None = None, **headers: str) -> int:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data, {"Host": "runs.example", **names})
    try:
        opener = urllib.request.build_opener(Unredirected)
        with opener.open(request, timeout=PATIENCE_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as err:
        return err.code


@pytest.fixture
def database(tmp_path: Path) -> str:
    """Return the index of a judged run."""
    from rule_runner.index.database import NewTrial, WatchDatabase

    write(tmp_path / "runs" / "a", rows=3)
    path = tmp_path / "watch.sqlite"
    with WatchDatabase(path) as index:
        index.add([NewTrial(str(tmp_path / "runs" / "a"), "runs", True, False, "/o/a")], 10.0)
    return str(path)


def test_pages_act_and_users_are_named_through_the_documented_nginx(
    tmp_path: Path, database: str
) -> None:
    secret = TokenFile(tmp_path / "tokens.json").add("ann", Role.ACT)
    arguments = ["--no-watch", "--database", database, "--tokens", "tokens.json"]
    proxy = ["--trusted-proxy", "127.0.0.1/32", "--user-header", "X-User"]
    with Serving(tmp_path, *arguments, *proxy) as serving:
        token = {"Authorization": f"Bearer {secret}"}
        action = "/api/v1/trials/1:cancel"  # 409: nothing is judged here
        with behind_nginx(tmp_path, documented(serving.url)) as url:
            assert status_of(f"{url}/api/v1/trials", X_User="mallory") == 401
            assert status_of(f"{url}/api/v1/trials", **token) == 200
            assert status_of(url + action, b"{}", Origin=ORIGIN, **token) == 409
            assert status_of(url + action, b"{}", Origin="http://evil.example", **token) == 403
            form = f"token={secret}".encode()
            assert status_of(f"{url}/login", form, Origin=ORIGIN) == 303
            forwarded = {"X-Forwarded-Host": "evil.example"}
            assert (
                status_of(url + action, b"{}", Origin="http://evil.example", **token, **forwarded)
                == 403
            )
            serving.url, own = url, serving.url
            events = serving.events(**token)
            assert events.get(timeout=PATIENCE_S) == "open"
            serving.url = own
        with behind_nginx(tmp_path, f"location / {{ proxy_pass {serving.url}; }}") as url:
            assert status_of(url + action, b"{}", **token) == 409
            assert status_of(url + action, b"{}", Origin=ORIGIN, **token) == 403
        named = f"location / {{ proxy_pass {serving.url}; proxy_set_header X-User $http_x_name; }}"
        with behind_nginx(tmp_path, named) as url:
            assert status_of(f"{url}/api/v1/trials", X_Name="ann", X_User="mallory") == 200
            twice = named.replace("$http_x_name;", "ann; proxy_set_header X-User $http_x_name;")
        with behind_nginx(tmp_path, twice) as url:
            assert status_of(f"{url}/api/v1/trials", X_Name="mallory") == 400
