"""A bucket behind the server whose answers can be spoiled, and a store over it."""

import pytest
import s3_objects
from clocks import PatientClock
from faulty_s3 import FaultyS3

from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.s3.bucket import Bucket
from rule_core.storage.s3.store import S3Store


@pytest.fixture
def bucket(faulty: FaultyS3) -> Bucket:
    return Bucket("s3://bucket/t", s3_objects.client(faulty.endpoint))


@pytest.fixture
def store(bucket: Bucket) -> RetryingStore:
    """Return a patient store, whose time passes by sleeping only."""
    return RetryingStore(S3Store(bucket), PatientClock())
