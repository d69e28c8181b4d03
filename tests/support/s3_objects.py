"""Objects in the S3 of this machine, for tests."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import aws_server
import pytest

from rule_core.storage import aws

BUCKET = "bucket"


@lru_cache
def client(endpoint: str) -> Any:
    """Return the client of a server; made once, for that is slow."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in aws_server.ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        return aws.client("s3", connect_timeout=2, read_timeout=2)


def make_bucket(endpoint: str, name: str = BUCKET) -> Any:
    """Make an empty bucket; return the server's client."""
    found = client(endpoint)
    found.create_bucket(Bucket=name)
    return found


def put(endpoint: str, prefix: str, files: Mapping[str, bytes]) -> None:
    """Put objects below a prefix."""
    for key, content in files.items():
        client(endpoint).put_object(Bucket=BUCKET, Key=prefix + key, Body=content)


def content(endpoint: str, prefix: str = "") -> dict[str, bytes]:
    """Return all objects below a prefix, by key."""
    asked = client(endpoint)
    listed = asked.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    return {
        one["Key"].removeprefix(prefix): asked.get_object(Bucket=BUCKET, Key=one["Key"])[
            "Body"
        ].read()
        for one in listed
    }


def uploads(endpoint: str) -> list[str]:
    """Return the keys of objects whose parts S3 holds back."""
    found = client(endpoint).list_multipart_uploads(Bucket=BUCKET)
    return [one["Key"] for one in found.get("Uploads", [])]
