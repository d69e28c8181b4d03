"""A server of S3 whose answers can be spoiled."""

from collections.abc import Iterator

import faulty_s3
import pytest
import s3_objects
from faulty_s3 import FaultyS3


@pytest.fixture(scope="module")
def faulty_server(aws_server: str) -> Iterator[FaultyS3]:
    with faulty_s3.serving(aws_server) as server:
        yield server


@pytest.fixture
def faulty(faulty_server: FaultyS3, aws_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> FaultyS3:
    """Return the server, with an empty bucket behind it; boto3 talks to it."""
    s3_objects.make_bucket(aws_endpoint)
    faulty_server.forget()
    monkeypatch.setenv("AWS_ENDPOINT_URL", faulty_server.endpoint)
    return faulty_server
