"""What reading TensorBoard event files takes beside other readers: for docs/performance.md.

Each reading is a process of its own. `bare` parses each event with compiled protobuf and a message
of the needed fields only, compares no checksum and keeps nothing. EventAccumulator and tbparse take
part if they are installed; they keep every point, as rule-runner does. Seconds of processor time,
without start-up. Memory is the peak beyond that before reading and 16 bytes a point.
"""

import json
import resource
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

CASES = {"50 tags, 20,000 steps": (50, 20_000), "1 tag, 1,000,000 steps": (1, 1_000_000)}
ROUNDS = 5
NAME = "events.out.tfevents.1700000000.host.1.0"
SLOW = ("EventAccumulator", "tbparse")  # read once
Result = dict[str, float]


def run(rounds: int = ROUNDS) -> None:
    """Print what reading takes, as ratios, and its memory."""
    for case, (tags, steps) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder, NAME), tags, steps)
            pairs = [(_asked("ours", folder), _asked("bare", folder)) for _ in range(rounds)]
            slow = {name: _asked(name, folder) for name in SLOW}
        ours = statistics.median(took["s"] for took, _ in pairs if took)
        click.echo(f"{case}: {ours:.2f} s")
        ratios = sorted(took["s"] / bare["s"] for took, bare in pairs if took and bare)
        if ratios:
            click.echo(
                f"  / bare protobuf: {ratios[0]:.2f} {statistics.median(ratios):.2f}", nl=False
            )
            click.echo(f" {ratios[-1]:.2f} (min, median, max of {rounds} pairs)")
        for name, took in slow.items():
            if took:
                click.echo(
                    f"  {name} / ours: {took['s'] / ours:.0f}, its memory {took['mb']:.0f} MB"
                )
        click.echo(
            f"  memory beyond the numbers: {max(took['mb'] for took, _ in pairs if took):.0f} MB"
        )


def write(path: Path, tags: int, steps: int) -> None:
    """Write an event file as torch does."""
    from rule_core.format.event_encoder import varint
    from rule_core.format.tfrecord import FOOTER, masked_crc

    def framed(payload: bytes) -> bytes:
        length = struct.pack("<Q", len(payload))
        return b"".join(
            (length, FOOTER.pack(masked_crc(length)), payload, FOOTER.pack(masked_crc(payload)))
        )

    names = [f"train/loss_{number:02}".encode() for number in range(tags)]
    with path.open("wb") as file:
        for step in range(1, steps + 1):
            head = b"\x09" + struct.pack("<d", 1.7e9 + step / 100) + b"\x10" + varint(step)
            for name in names:
                value = b"\x0a" + varint(len(name)) + name + b"\x15"
                value += struct.pack("<f", 1 / step)
                summary = b"\x0a" + varint(len(value)) + value
                file.write(framed(head + b"\x2a" + varint(len(summary)) + summary))


def _asked(what: str, folder: str) -> Result | None:
    """Return what another process measures; None if what it needs is not installed."""
    command = [sys.executable, __file__, what, folder]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer: Result | None = json.loads(done.stdout.splitlines()[-1])
    return answer


def ours(folder: str) -> Callable[[], int]:
    """Return what reads a folder as an evaluation does, and returns the number of points."""
    from rule_core.sources.format import Recognized
    from rule_core.sources.open import open_sources
    from rule_core.sources.tensorboard import FORMAT
    from rule_core.storage.local import LocalStore

    index = open_sources(LocalStore(folder), [(FORMAT, Recognized("tensorboard", "", "it is"))])

    def read() -> int:
        index.refresh()
        return sum(len(steps) for steps in index.names.values())

    return read


def bare(folder: str) -> Callable[[], int]:
    """Return what parses every event."""
    event = _event()
    data = Path(folder, NAME).read_bytes()

    def read() -> int:
        position, count = 0, 0
        length_at = struct.Struct("<Q").unpack_from
        while position < len(data):
            start = position + 12
            (length,) = length_at(data, position)
            event.FromString(data[start : start + length])
            position = start + length + 4
            count += 1
        return count

    return read


def _event() -> Any:
    """Return the class of messages that have the fields of events with scalars."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="bench", syntax="proto3")
    messages = {
        "Value": [("tag", 1, field.TYPE_STRING, ""), ("simple_value", 2, field.TYPE_FLOAT, "")],
        "Summary": [("value", 1, field.TYPE_MESSAGE, "Value")],
        "Event": [
            ("wall_time", 1, field.TYPE_DOUBLE, ""),
            ("step", 2, field.TYPE_INT64, ""),
            ("summary", 5, field.TYPE_MESSAGE, "Summary"),
        ],
    }
    for message, fields in messages.items():
        added = file.message_type.add(name=message)
        for name, number, kind, of in fields:
            label = field.LABEL_REPEATED if of == "Value" else field.LABEL_OPTIONAL
            its = added.field.add(name=name, number=number, type=kind, label=label)
            if of:
                its.type_name = f".bench.{of}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.Event"))


def event_accumulator(folder: str) -> Callable[[], int]:
    """Return what loads a folder with TensorBoard's reader, without a limit of points."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    reader = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})

    def read() -> int:
        reader.Reload()
        return sum(len(reader.Scalars(tag)) for tag in reader.Tags()["scalars"])

    return read


def tbparse(folder: str) -> Callable[[], int]:
    """Return what loads a folder with tbparse."""
    from tbparse import SummaryReader

    return lambda: len(SummaryReader(folder).scalars)


READERS = {"ours": ours, "bare": bare, "EventAccumulator": event_accumulator, "tbparse": tbparse}


def measure(what: str, folder: str) -> Result | None:
    """Read a folder; return seconds, and MB beyond the points."""
    try:
        read = READERS[what](folder)
    except ImportError:
        return None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    count = read()
    took = time.process_time() - began
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"s": took, "mb": grown / 1024 - 16 * count / 2**20}


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
