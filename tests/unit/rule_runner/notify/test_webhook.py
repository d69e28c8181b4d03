"""Webhooks: signed, in time, to the address that was checked and to no other."""

import hashlib
import hmac
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import http_places
import pytest
import structlog
from http_places import Answer, Place

from rule_runner.notify.webhook import WebhookError, check, masked, post, secret_of_environment

NAME = "hooks.example.org"


class Now:
    """A clock that stands."""

    def monotonic(self) -> float:
        raise NotImplementedError

    def time(self) -> float:
        return 1_700_000_000.9

    def sleep(self, seconds: float) -> None:
        raise NotImplementedError


def send(url: str, body: bytes = b"{}", secret: str | None = None, **more: Any) -> None:
    post(url, body, content_type="application/json", secret=secret, clock=Now(), **more)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a key and a certificate of its own making for `NAME` and 127.0.0.1."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME},IP:127.0.0.1"),
            *("-keyout", str(path), "-out", str(path.with_suffix(".crt"))),
        ],
        check=True,
        capture_output=True,
    )
    with path.open("a") as both:
        both.write(path.with_suffix(".crt").read_text())
    return path


@pytest.fixture
def _trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.with_suffix(".crt")))


@pytest.fixture
def place() -> Iterator[Place]:
    with http_places.serving() as found:
        yield found


# --- what is sent


def test_what_arrives_is_what_was_posted_and_signed(place: Place) -> None:
    send(f"{place.url}/services/T0?token=x#part", b'{"a": 1}', "geheim é")
    (request,) = place.requests
    digest = hmac.new("geheim é".encode(), b'1700000000.{"a": 1}', hashlib.sha256).hexdigest()
    assert (request.path, request.body) == ("/services/T0?token=x", b'{"a": 1}')
    assert request.headers == {
        "Host": f"127.0.0.1:{place.server_port}",
        "Accept-Encoding": "identity",
        "Content-Length": "8",
        "Content-Type": "application/json",
        "User-Agent": "rule-runner",
        "Connection": "close",
        "RuleRunner-Signature": f"t=1700000000,v1={digest}",
    }


def test_without_a_secret_nothing_is_signed(place: Place) -> None:
    send(place.url)
    assert "RuleRunner-Signature" not in place.requests[0].headers
    assert place.requests[0].path == "/"


def test_a_secret_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULE_RUNNER_WEBHOOK_SECRET", "s")
    with structlog.testing.capture_logs() as logs:
        assert secret_of_environment() == "s"
    assert logs == []


@pytest.mark.parametrize("text", ["", None])
def test_that_there_is_no_secret_is_reported(
    text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RULE_RUNNER_WEBHOOK_SECRET", raising=False)
    if text is not None:
        monkeypatch.setenv("RULE_RUNNER_WEBHOOK_SECRET", text)
    with structlog.testing.capture_logs() as logs:
        assert secret_of_environment() is None
    assert [log["event"] for log in logs] == ["webhook_unsigned"]


def test_proxies_of_the_environment_are_not_used(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    send(place.url)
    assert len(place.requests) == 1


# --- answers


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_an_answer_that_takes_it(status: int) -> None:
    with http_places.serving(lambda _: Answer(status)) as place:
        send(place.url)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int) -> None:
    with http_places.serving() as other:
        headers = {"Location": f"{other.url}/elsewhere"}
        with http_places.serving(lambda _: Answer(status, headers=headers)) as place:
            message = rf"answered with redirect {status}, which is not followed\. Give the final"
            with pytest.raises(WebhookError, match=message) as found:
                send(place.url)
    assert (other.requests, found.value.transient) == ([], False)


@pytest.mark.parametrize(
    ("status", "transient"),
    [
        *((status, False) for status in (101, 400, 401, 404, 410, 600)),
        *((status, True) for status in (408, 429, 500, 503)),
    ],
)
def test_an_answer_that_does_not_take_it(status: int, transient: bool) -> None:
    with http_places.serving(lambda _: Answer(status)) as place:
        message = rf"^Webhook http://127\.0\.0\.1:\d+/\.\.\. answered with status {status}\.$"
        with pytest.raises(WebhookError, match=message) as found:
            send(f"{place.url}/secret")
    assert found.value.transient == transient


def dripping(let_go: threading.Event, data: bytes) -> Any:
    """Return what writes `data` again and again instead of an answer."""

    def drip(handler: BaseHTTPRequestHandler) -> None:
        with suppress(OSError):
            while not let_go.wait(0.02):
                handler.wfile.write(data)

    return drip


@pytest.mark.parametrize("byte", [b"", b"x", b"HTTP/1.1 100 Continue\r\n\r\n"], ids=repr)
def test_a_server_that_never_answers_is_left_in_time(byte: bytes) -> None:
    let_go = threading.Event()
    answer = Answer(act=dripping(let_go, byte))
    with http_places.serving(lambda _: answer) as place:
        with pytest.raises(WebhookError, match=r"did not answer within 0\.3 s\.$") as found:
            send(place.url, timeout_s=0.3)
        let_go.set()
    assert found.value.transient


def test_a_body_that_never_ends_is_not_read() -> None:
    let_go = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        let_go.wait()

    with http_places.serving(lambda _: Answer(act=drip)) as place:
        send(place.url, timeout_s=60)
        let_go.set()


def test_a_resolver_that_hangs_is_left_in_time() -> None:
    let_go = threading.Event()

    def resolve(*_: object) -> list[str]:
        let_go.wait()
        return []

    with pytest.raises(WebhookError, match="did not answer within"):
        send("https://hooks.example.org/x", timeout_s=0.1, resolve=resolve)
    let_go.set()


def test_what_is_posted_too_late_is_not_posted() -> None:
    let_go, over = threading.Event(), threading.Event()

    def resolve(*_: object) -> list[str]:
        let_go.wait()
        over.set()
        return ["127.0.0.1"]

    with http_places.serving() as place:
        with pytest.raises(WebhookError, match="did not answer within"):
            send(place.url, timeout_s=0.1, resolve=resolve)
        let_go.set()
        over.wait()
        for thread in threading.enumerate():
            if thread.name == "webhook":
                thread.join()
        assert place.requests == []


def test_a_server_that_does_not_speak_http() -> None:
    def babble(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"220 smtp.example.org ESMTP\r\n")
        handler.connection.shutdown(socket.SHUT_RDWR)

    with (
        http_places.serving(lambda _: Answer(act=babble)) as place,
        pytest.raises(WebhookError, match="could not be posted to: BadStatusLine") as found,
    ):
        send(place.url)
    assert found.value.transient


def test_nobody_there_is_a_sentence_without_the_path() -> None:
    message = (
        r"^Webhook http://127.0.0.1:1/\.\.\. could not be posted to: the connection was refused\.$"
    )
    with pytest.raises(WebhookError, match=message) as found:
        send("http://127.0.0.1:1/secret?token=x")
    assert found.value.transient


# --- addresses


def to(*addresses: str) -> Any:
    return lambda *_: list(addresses)


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "fe80::1", "fd00:ec2::254", "0.0.0.0", "::ffff:169.254.169.254"],
)
def test_a_name_that_leads_where_nobody_may_go_is_refused(address: str) -> None:
    message = r"resolves to .*: link-local, metadata, multicast, reserved and translated addresses"
    for addresses in ([address], ["127.0.0.1", address]):
        with pytest.raises(WebhookError, match=message) as found:
            send(f"https://{NAME}/x", resolve=to(*addresses))
        assert not found.value.transient


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "[fe80::1]", "[::ffff:a9fe:a9fe]", "2852039166", "0xa9fea9fe"]
)
def test_such_an_address_itself_is_refused(host: str) -> None:
    with pytest.raises(WebhookError, match="link-local, metadata, multicast"):
        send(f"https://{host}/latest/meta-data")


def test_http_is_for_this_machine_only() -> None:
    message = (
        r"http://hooks\.example\.org/\.\.\. must be https: it does not resolve to this machine"
    )
    with pytest.raises(WebhookError, match=message):
        send(f"http://{NAME}/x", resolve=to("93.184.216.34"))
    with pytest.raises(WebhookError, match="must be https"):
        send(f"http://{NAME}/x", resolve=to("127.0.0.1", "93.184.216.34"))


def test_a_second_resolution_is_never_asked_for(place: Place) -> None:
    asked = []

    def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append((host, port))
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    send(f"http://{NAME}:{place.server_port}/x", resolve=rebinding)
    assert asked == [(NAME, place.server_port)]
    assert place.requests[0].headers["Host"] == f"{NAME}:{place.server_port}"


def test_a_second_address_is_tried_if_the_first_is_missing(place: Place) -> None:
    send(f"http://{NAME}:{place.server_port}/x", resolve=to("::1", "127.0.0.1"))
    assert len(place.requests) == 1


def test_a_name_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WebhookError, match="has no address"):
        send(f"https://{NAME}/x", resolve=to())

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(WebhookError, match="its host is unknown") as found:
        send(f"https://{NAME}/x")
    assert found.value.transient


# --- TLS


@pytest.mark.usefixtures("_trusted")
@pytest.mark.parametrize("host", [NAME, "127.0.0.1"])
def test_the_certificate_is_that_of_the_name(certificate: Path, host: str) -> None:
    with http_places.serving(certificate=certificate) as place:
        send(f"https://{host}:{place.server_port}/x", resolve=to("127.0.0.1"))
        assert place.requests[0].headers["Host"] == f"{host}:{place.server_port}"


@pytest.mark.usefixtures("_trusted")
def test_the_certificate_of_another_name_is_refused(certificate: Path) -> None:
    with http_places.serving(certificate=certificate) as place:
        with pytest.raises(WebhookError, match=r"not valid \(Hostname mismatch") as found:
            send(f"https://other.example.org:{place.server_port}/x", resolve=to("127.0.0.1"))
        assert (place.requests, found.value.transient) == ([], False)


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    with http_places.serving(certificate=certificate) as place:
        with pytest.raises(WebhookError, match="certificate is not valid"):
            send(f"https://{NAME}:{place.server_port}/x", resolve=to("127.0.0.1"))
        assert place.requests == []


def test_plain_http_where_tls_is_spoken_is_a_sentence(place: Place) -> None:
    with pytest.raises(WebhookError, match=r"TLS failed \(WRONG_VERSION_NUMBER\)"):
        send(f"https://{NAME}:{place.server_port}/x", resolve=to("127.0.0.1"))


# --- URLs


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://example.org/x", r"must begin with https:// and a host, got '\.\.\.'"),
        ("example.org/secret", r"must begin with https://"),
        ("https:///secret", r"must begin with https:// and a host"),
        ("https://user@example.org/", "must not hold a user or password"),
        ("https://:pass@example.org/", "must not hold a user or password"),
        ("https://example.org:port/", "is not a URL"),
        ("https://[::1/x", "is not a URL"),
        ("https://example.org/a b", "must be printable ASCII without spaces"),
        ("https://example.org/a\r\nX: y", "must be printable ASCII"),
        ("https://exämple.org/", "must be printable ASCII"),
    ],
)
def test_an_address_that_cannot_be_posted_to(url: str, message: str) -> None:
    with pytest.raises(WebhookError, match=message) as found:
        check(url)
    assert "secret" not in str(found.value)
    assert "pass@" not in str(found.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://u:p@example.org/a?b#c", "https://example.org/..."),
        ("https://example.org:8443", "https://example.org:8443/..."),
        ("http://[::1]:80/x", "http://[::1]:80/..."),
        ("token", "..."),
        ("https://[bad", "..."),
    ],
)
def test_what_is_secret_is_masked(url: str, shown: str) -> None:
    assert masked(url) == shown


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://169.254.169.254/latest", r"/\.\.\. resolves to 169\.254\.169\.254: link-local"),
        ("https://[::ffff:169.254.169.254]/x", r"resolves to 169\.254\.169\.254: link-local"),
        ("https://[fd00:ec2::254]/x", "resolves to fd00:ec2::254: link-local, metadata"),
        ("http://10.0.0.1/x", r"^Webhook http://10\.0\.0\.1/\.\.\. must be https"),
    ],
)
def test_an_address_that_nothing_is_posted_to_is_refused_before_anything_runs(
    url: str, message: str
) -> None:
    with pytest.raises(WebhookError, match=message) as found:
        check(url)
    assert not found.value.transient
