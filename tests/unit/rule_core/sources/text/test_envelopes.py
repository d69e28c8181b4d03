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
    given = [envelopes.unwrap(docker("x" * 4) + "\n") for _ in range(9)]
    assert max(map(len, given)) <= 14
    assert "".join(given) == "x" * 36
