"""A server that answers as AWS does, over HTTP on this machine; for one test process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


@contextmanager
def serving(address: str = "127.0.0.1") -> Iterator[str]:
    """Run the server on a free port; give its address."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - slow to import

    server = ThreadedMotoServer(ip_address=address, port=0, verbose=False)
    server.start()
    try:
        yield f"http://{address}:{server.get_host_and_port()[1]}"
    finally:
        server.stop()


def reset(endpoint: str) -> None:
    """Forget all that the server was told."""
    with urlopen(Request(f"{endpoint}/moto-api/reset", method="POST")):  # noqa: S310 - http
        pass
