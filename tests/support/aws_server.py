"""A server that answers as AWS does, over HTTP on this machine; for one test process."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen

import uncounted

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


# A process of its own, since nobody wants the lines counted that it runs through. It ends with its
# input.
PROGRAM = """
import sys
import moto.s3.responses  # otherwise loaded by the first request, within its time limit
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address=sys.argv[1], port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def serving(address: str = "127.0.0.1", **settings: str) -> Iterator[str]:
    """Run the server on a free port, with settings of moto if any; give its address."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, address],
        env=uncounted.environment() | ENVIRONMENT | settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        yield f"http://{address}:{int(server.stdout.readline())}"


def reset(endpoint: str) -> None:
    """Reset the server."""
    with urlopen(Request(f"{endpoint}/moto-api/reset", method="POST")):
        pass
