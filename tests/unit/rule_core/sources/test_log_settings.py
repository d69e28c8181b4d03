"""log_settings: the settings in binary logs; a log that is cut off has the first of them."""

import json
import random
import struct
from collections.abc import Mapping
from typing import Any

import pytest
import rawtrial
import wandb_files
from wandb_files import field, item

from rule_core.sources.log_settings import log_settings

WANDB, EVENTS = "run-abc.wandb", "events.out.tfevents.1.host"


def of(name: str, content: bytes) -> list[Mapping[str, Any]]:
    return [settings for settings in log_settings(name, content) if settings]


def entry(name: bytes, setting: bytes) -> bytes:
    return field(1, field(1, name) + field(2, setting))


def number(figure: float) -> bytes:
    return b"\x11" + struct.pack("<d", figure)


def event(tag: bytes, content: bytes) -> bytes:
    return rawtrial.record(field(5, field(1, field(1, tag) + content)))


HYPERPARAMETERS = event(
    b"_hparams_/session_start_info",
    field(
        9,
        field(
            1,
            field(1, b"hparams")
            + field(
                2,
                field(
                    3,
                    entry(b"lr", number(0.1))
                    + entry(b"opt", field(3, b"sgd"))
                    + entry(b"amp", field(4, 1))
                    + entry(b"broken", field(2, 1 << 40)),
                ),
            ),
        ),
    ),
)
ARGUMENTS = {"beta": 0.9, "model": {"layers": 2}}
TEXTS = event(b"args/text_summary", field(8, field(8, json.dumps(ARGUMENTS).encode()))) + event(
    b"notes/text_summary", field(8, field(8, b"a text"))
)
SETTINGS = {"lr": 0.1, "opt": "sgd", "amp": True, "broken": None}


def test_a_log_of_wandb() -> None:
    begun = field(17, field(4, item("lr", 0.1) + item("model", {"layers": 2})))
    changed = field(5, item(["optimizer", "name"], "adam"))
    log = wandb_files.log(begun, wandb_files.row(1, {"loss": 1.0}), changed)
    assert of(WANDB, log) == [
        {"lr": 0.1, "model": {"layers": 2}},
        {"optimizer/name": "adam"},
    ]


def test_events_of_tensorboard() -> None:
    assert of(EVENTS, HYPERPARAMETERS + TEXTS) == [SETTINGS, ARGUMENTS]


def test_a_log_that_is_cut_off() -> None:
    log = HYPERPARAMETERS + TEXTS
    for size in range(len(log)):
        expected = [SETTINGS] if size >= len(HYPERPARAMETERS) else []
        assert of(EVENTS, log[:size]) in (expected, [SETTINGS, ARGUMENTS])


@pytest.mark.parametrize("name", [WANDB, EVENTS])
def test_damage_raises_nothing(name: str) -> None:
    rng = random.Random(0)
    whole = wandb_files.run([(1, {"loss": 1.0})]) if name == WANDB else HYPERPARAMETERS + TEXTS
    for _ in range(2000):
        content = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            content[rng.randrange(12, len(content))] = rng.randrange(256)
        of(name, bytes(content))
