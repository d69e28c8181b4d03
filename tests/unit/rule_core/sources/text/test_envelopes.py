"""Envelopes: lines as the training printed them."""

import json

import pytest

from rule_core.sources.text.envelopes import HEAD_LINES, Envelopes


def unwrapped(content: str) -> list[str]:
    """Return the lines, which must be the same if each is read by itself."""
    single = Envelopes()
    lines = "".join(single.unwrap(line) for line in content.splitlines(keepends=True))
    lines += single.unwrap("", is_last=True)
    assert Envelopes().unwrap(content, is_last=True) == lines
    return lines.splitlines()


def docker(log: str) -> str:
    return json.dumps(
        {"log": log, "stream": "stdout", "time": "2026-01-01T00:00:00Z"}, separators=(",", ":")
    )


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["loss 1", "[x] loss 2", "(a) b"], ["loss 1", "[x] loss 2", "(a) b"]),
        (
            [docker("loss 1\n"), "", docker("lo"), docker("ss \u00e92\n"), "damage", docker("end")],
            ["loss 1", "", "loss \u00e92", "damage", "end"],
        ),
        (
            [
                "2026-01-01T00:00:00.123456789Z stdout F loss 1",
                "2026-01-01T00:00:00.2+01:00 stderr P loss ",
                "2026-01-01T00:00:00.3+01:00 stderr F 2",
                "2026-01-01T00:00:01Z stdout F ",
            ],
            ["loss 1", "loss 2", ""],
        ),
        (
            [
                "-- Journal begins at Mon 2026-01-05 10:00:00 UTC. --",
                "Feb  3 10:00:00 host train.sh[123]: loss 1",
                "Feb 03 10:00:01 host systemd[1]: Started.",
            ],
            ["-- Journal begins at Mon 2026-01-05 10:00:00 UTC. --", "loss 1", "Started."],
        ),
        (
            ['{"time": 1, "stream": "stdout", "log": "loss 1\\n"}', '{"time": 2, "log": "loss'],
            ["loss 1", '{"time": 2, "log": "loss'],
        ),
        (
            ['{"__REALTIME_TIMESTAMP": "1", "PRIORITY": "6", "MESSAGE": "loss=1.5"}'],
            ["loss=1.5"],
        ),
        (
            [
                '{"text": "10:00 | loss: 1.5\\n", "record": {"line": 8, "time": {"repr": "10"}}}',
                '{"text": "a\\nb", "record": {"time": 2}}',
                '{"text": "end", "record": {"time": 3, "extra": {"loss": 0.5}}}',
            ],
            [
                "10:00 | loss: 1.5",
                "a",
                "b",
                '{"text": "end", "record": {"time": 3, "extra": {"loss": 0.5}}}',
            ],
        ),
        (
            ["timestamp,message", '17,"loss 1, ""acc"" 2"', "18,loss 2", "", "19"],
            ["message", 'loss 1, "acc" 2', "loss 2", "", "19"],
        ),
        (["2026-01-05T10:00:00+0000 host python[7]: loss 1"], ["loss 1"]),
        (["2026-01-05T10:00:00 INFO loss: 1"], ["2026-01-05T10:00:00 INFO loss: 1"]),
        (
            ["(TaskRunner pid=12) step:1", "(Worker pid=3, ip=10.0.0.1) step:1", "step:2"],
            ["step:1", "step:1", "step:2"],
        ),
        (
            ["launched", "[rank1]: loss 1", "[rank0]: loss 2", "[rank1]: loss 3", "[rank1]: only"],
            ["launched", "loss 1", "loss 2", "", "only"],
        ),
        (["[1,1]<stdout>:a 1", "[1,0]<stderr>:a nan", "[1,1]<stdout>:b"], ["", "a nan", "b"]),
        ([docker("[rank0]: loss 1\n"), docker("[rank1]: loss 1\n")], ["loss 1", ""]),
        (
            ["1: loss 3", "0: loss 2", " 1: loss 4", "10: other", "0: loss 1e-5"],
            ["", "loss 2", "", "other", "loss 1e-5"],
        ),
        (["0: loss 2", "0: loss 1"], ["loss 2", "loss 1"]),
        (["1: loss 2", "1: val 3", "2: loss 1"], ["1: loss 2", "1: val 3", "2: loss 1"]),
        (["1: a", "0: a", "no label"], ["1: a", "0: a", "no label"]),
    ],
)
def test_lines_are_those_of_the_training(lines: list[str], expected: list[str]) -> None:
    assert unwrapped("".join(f"{line}\n" for line in lines)) == expected


@pytest.mark.parametrize(
    "lines",
    [
        ['{"time": 1, "message": "loss: 1.5", "step": 2}'],
        ['{"time": 1, "message": "start"}', '{"time": 2, "msg": "end", "data": {"loss": "0.5"}}'],
        ['{"time": 1, "message": "start"}', '{"time": 2, "message": "end", "val_loss": NaN}'],
        ['{"text": "a sample of a data set, loss: 1.5"}'],
        ['{"time": 1, "message": {"loss": "low"}}'],
        ['{"time": 1, "message": "loss: 1.5"'],
        ["message,timestamp", "loss,17"],
        ["timestamp,message,step", "17,a,3"],
    ],
)
def test_rows_and_samples_have_no_envelope(lines: list[str]) -> None:
    content = "".join(f"{line}\n" for line in lines)
    assert unwrapped(content) == lines
    assert Envelopes().unwrap(content) == content  # nothing waits


@pytest.mark.parametrize("text", ["time", "x ", '""', "a: ", "\\\\"])
@pytest.mark.parametrize("start", ['{"a": "', '{"time": 1, "message": "', 'timestamp,message\n1,"'])
def test_a_hostile_line_takes_no_long_time(start: str, text: str) -> None:
    content = f"{start}{text * (1 << 18)}"
    assert Envelopes().unwrap(content, is_last=True)


def test_objects_wait_until_one_tells_what_they_are() -> None:
    envelopes = Envelopes()
    assert envelopes.unwrap('{"time": 1, "message": "start"}\n') == ""
    assert envelopes.unwrap('{"time": 2, "message": "loss: 0.5"}\n') == "start\nloss: 0.5\n"
    line = '{"time": 1, "message": "start"}\n'
    assert Envelopes().unwrap(line * HEAD_LINES) == "start\n" * HEAD_LINES


def test_labels_are_known_after_the_first_lines() -> None:
    envelopes = Envelopes()
    lines = [f"{rank}: loss {step}\n" for step in range(HEAD_LINES // 2) for rank in (1, 0)]
    assert envelopes.unwrap("".join(lines[:-1])) == ""
    assert envelopes.unwrap(lines[-1]).split() == [
        word for step in range(HEAD_LINES // 2) for word in ("loss", str(step))
    ]
    assert envelopes.unwrap("1: loss 9\n0: loss 8\n") == "\nloss 8\n"


@pytest.mark.parametrize(
    "tag", ["[rank1]: ", "[default1]:", "[1,1]<stdout>:", "(Worker pid=3, ip=10.0.0.1) "]
)
@pytest.mark.parametrize("before", ["", "no tag\n"])
def test_tags_are_found_in_any_line_of_a_block(before: str, tag: str) -> None:
    envelopes = Envelopes()
    envelopes.unwrap("launched\n" * HEAD_LINES)
    assert envelopes.unwrap(f"{before}{tag}loss 1\n") == f"{before}loss 1\n"


def test_steps_before_lines_are_no_ranks() -> None:
    lines = [f"{step}: loss 1" for step in range(100)]
    assert unwrapped("\n".join(lines) + "\n") == lines


def test_a_line_that_never_ends_is_given_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rule_core.sources.text.envelopes.MAX_UNFINISHED", 10)
    envelopes = Envelopes()
    envelopes.unwrap(docker("loss: 0.5\n"))
    given = [envelopes.unwrap(docker("x" * 4) + "\n") for _ in range(9)]
    assert max(map(len, given)) <= 14
    assert "".join(given) == "x" * 36
