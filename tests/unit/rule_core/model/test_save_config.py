import json
from collections.abc import Callable
from typing import Any

import answers
import pytest
from recorded import MISSING, SHARED, agrees, classes

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.model.save_config import SaveConfig, SaveConfigMode
from rule_core.modes import ModeKeys

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
RECORDED = SHARED / "h_saveconfig" / "expected.json"


def recorded(part: str) -> Any:
    if not RECORDED.exists():
        pytest.skip(MISSING)
    return json.loads(RECORDED.read_text(encoding="utf-8"))["extra"][part]


def config(**modes: SaveConfigMode) -> SaveConfig:
    return SaveConfig({ModeKeys[name]: mode for name, mode in modes.items()})


def saved(given: SaveConfigMode, end: int) -> list[int]:
    return [step for step in range(end) if given.should_save_step(step)]


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        ({}, [0, 500, 1000]),
        ({"save_interval": 400}, [0, 400, 800]),
        # The interval counts from step 0, not from the start.
        ({"save_interval": 300, "start_step": 2}, [300, 600, 900]),
        ({"save_interval": 3, "end_step": 7}, [0, 3, 6]),
        ({"save_interval": 3, "start_step": 2, "end_step": 7}, [3, 6]),
        ({"save_interval": 3, "start_step": 3, "end_step": 6}, [3]),
        ({"save_steps": [7, 3]}, [3, 7]),
        # Listed steps are saved before the start and after the end too.
        ({"save_steps": [3, 7], "start_step": 5}, [3, 7]),
        ({"save_steps": (3, 7), "end_step": 5, "save_interval": 2}, [0, 2, 3, 4, 7]),
        ({"end_step": 0}, []),
        ({"end_step": 0, "save_steps": [0]}, [0]),
        ({"save_interval": "400", "start_step": " 1", "end_step": "801"}, [400, 800]),
        ({"save_interval": 400.0}, [0, 400, 800]),
        ({"save_interval": -400}, [0, 400, 800]),
        ({"save_interval": None, "start_step": None, "save_steps": None}, [0, 500, 1000]),
    ],
)
def test_steps_are_saved_by_interval_range_and_list(
    arguments: dict[str, Any], steps: list[int]
) -> None:
    assert saved(SaveConfigMode(**arguments), 1001) == steps


def test_steps_are_saved_as_recorded() -> None:
    for one in recorded("should_save"):
        # smdebug's interval is 500 where steps are listed without one.
        listed_only = one["kwargs"].get("save_steps") and not one["kwargs"].get("save_interval")
        mode = SaveConfigMode(**one["kwargs"], **({"save_interval": 500} if listed_only else {}))
        assert mode.to_json_dict() == one["json"]
        # The first 20 saved steps, or those below 1001, were recorded.
        assert saved(mode, 1001)[: len(one["saved"])] == one["saved"]
        assert len(one["saved"]) == 20 or saved(mode, 1001) == one["saved"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"save_interval": 0}, "save_interval must be an integer other than 0, got 0."),
        ({"save_interval": "0"}, "save_interval must be an integer other than 0, got '0'."),
        ({"save_interval": "x"}, "save_interval must be an integer, got 'x'."),
        ({"start_step": 1.5}, "start_step must be an integer, got 1.5."),
        ({"end_step": ""}, "end_step must be an integer, got ''."),
        ({"end_step": []}, r"end_step must be an integer, got \[\]."),
        ({"end_step": float("nan")}, "end_step must be an integer, got nan."),
        ({"save_steps": "1,2"}, "save_steps must be a list of integers, got '1,2'."),
        ({"save_steps": [1.5]}, r"save_steps must be a list of integers, got \[1.5\]."),
        ({"save_steps": 5}, "save_steps must be a list of integers, got 5."),
    ],
)
def test_what_is_no_step_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SMDebugValueError, match=f"^{message}$"):
        SaveConfigMode(**arguments)


def test_lists_of_steps_are_not_shared() -> None:
    steps = [3]
    one, two = SaveConfigMode(save_steps=steps), SaveConfigMode()
    steps.append(4)
    one.to_json_dict()["save_steps"].append(5)
    assert (one.save_steps, two.save_steps) == ([3], [])


def test_a_mode_can_be_changed_and_stays_checked() -> None:
    mode = SaveConfigMode(2)
    mode.save_steps.append(3)
    mode.end_step = 5
    mode.start_step = "4"  # type: ignore[assignment]  # numbers may be text
    assert saved(mode, 9) == [3, 4]
    mode.end_step = None
    assert saved(mode, 9) == [3, 4, 6, 8]
    with pytest.raises(SMDebugValueError, match=r"^save_interval must be an integer other than 0"):
        mode.save_interval = 0
    with pytest.raises(AttributeError):
        mode.interval = 3  # type: ignore[attr-defined]  # misspelt
    assert mode == SaveConfigMode(2, 4, None, [3])


def test_changing_one_mode_leaves_the_others() -> None:
    for given in (SaveConfig(), SaveConfig.from_save_config_mode(SaveConfigMode())):
        train = given.get_save_config(TRAIN)
        train.save_interval = 3
        train.save_steps.append(1)
        assert given.get_save_config(EVAL) == SaveConfigMode()


def test_a_mode_is_compared_by_content() -> None:
    assert SaveConfigMode(2, save_steps=[1]) == SaveConfigMode("2", save_steps=(1,))
    assert SaveConfigMode(2) != SaveConfigMode(3)
    assert repr(SaveConfigMode(2)) == (
        "SaveConfigMode(save_interval=2, start_step=0, end_step=None, save_steps=[])"
    )


def test_each_mode_has_its_own_steps() -> None:
    given = config(TRAIN=SaveConfigMode(2), EVAL=SaveConfigMode(3))
    assert [step for step in range(7) if given.should_save_step(TRAIN, step)] == [0, 2, 4, 6]
    assert [step for step in range(7) if given.should_save_step(EVAL, step)] == [0, 3, 6]
    same = SaveConfig(save_interval=4, start_step=1, end_step=9, save_steps=[2])
    assert [same.get_save_config(mode) for mode in ModeKeys] == [SaveConfigMode(4, 1, 9, [2])] * 4


def test_a_mode_without_configuration_cannot_be_asked() -> None:
    with pytest.raises(
        SMDebugValueError,
        match=r"^The save configuration has no mode EVAL, got SaveConfig\(.*\)\. Merge it",
    ):
        config(TRAIN=SaveConfigMode()).should_save_step(EVAL, 0)


def test_a_config_for_one_mode_that_is_asked_for_another_raises_as_in_smdebug() -> None:
    with pytest.raises(SMDebugValueError, match=r"^The save configuration has no mode EVAL"):
        config(TRAIN=SaveConfigMode()).get_save_config(EVAL)


def test_merging_fills_what_is_missing() -> None:
    given = config(TRAIN=SaveConfigMode(2))
    default = SaveConfig(save_interval=7)
    given.merge_default_save_config(default)
    assert given == config(
        TRAIN=SaveConfigMode(2),
        EVAL=SaveConfigMode(7),
        PREDICT=SaveConfigMode(7),
        GLOBAL=SaveConfigMode(7),
    )
    assert default == SaveConfig(save_interval=7)


def test_the_dictionary_of_the_caller_stays_as_it_is() -> None:
    modes: dict[ModeKeys, SaveConfigMode | None] = {TRAIN: SaveConfigMode(2), EVAL: None}
    given = SaveConfig(modes)
    given.merge_default_save_config(SaveConfig())
    given.set_save_config(TRAIN, SaveConfigMode(3))
    assert modes == {TRAIN: SaveConfigMode(2), EVAL: None}


@pytest.mark.parametrize(
    "modes",
    [{"TRAIN": SaveConfigMode()}, {TRAIN: {"save_interval": 2}}, {TRAIN: 5}, {"TRAIN": None}],
)
def test_only_modes_are_configured(modes: dict[Any, Any]) -> None:
    with pytest.raises(
        SMDebugValueError, match=r"^A save configuration maps ModeKeys to SaveConfigMode, got .*\.$"
    ):
        SaveConfig(modes)


ALL = {mode.name: None for mode in ModeKeys}
DEFAULT = {"save_interval": 500, "save_steps": [], "start_step": 0, "end_step": None}
TWO = {"save_interval": 2, "save_steps": [], "start_step": 0, "end_step": None}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ALL),
        ({"TRAIN": None}, ALL),
        ({"TRAIN": {"save_interval": 2, "other": 1}}, {**ALL, "TRAIN": TWO}),
        ({TRAIN: {"save_interval": "2"}}, {**ALL, "TRAIN": TWO}),
        ({TRAIN: SaveConfigMode(2)}, {**ALL, "TRAIN": TWO}),
        (SaveConfigMode(2), dict.fromkeys(ALL, TWO)),
        (SaveConfig(save_interval=2), dict.fromkeys(ALL, TWO)),
        (None, dict.fromkeys(ALL, DEFAULT)),
    ],
)
def test_what_users_give_is_parsed(given: object, expected: dict[str, Any]) -> None:
    result = SaveConfig.parse(given)
    assert result.to_json_dict() == expected
    assert list(result.to_json_dict()) == ["TRAIN", "EVAL", "PREDICT", "GLOBAL"]
    assert SaveConfig.from_dict(result.to_json_dict()) == result


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (5, SMDebugTypeError, "A save configuration must be a SaveConfig or .*, got 5."),
        (
            {"train": {}},
            SMDebugValueError,
            "A mode .* must be one of TRAIN, EVAL, PREDICT, GLOBAL, got 'train'.",
        ),
        ({"save_interval": 2}, SMDebugValueError, "A mode .*, got 'save_interval'."),
        ({"TRAIN": 2}, SMDebugValueError, ".* of a mode must be a dictionary, got 2."),
        ({"TRAIN": {"save_interval": 0}}, SMDebugValueError, "save_interval .* got 0."),
    ],
)
def test_what_cannot_be_parsed_is_refused(
    given: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        SaveConfig.parse(given)


def test_configurations_are_compared_by_content() -> None:
    assert SaveConfig(save_interval=2) == SaveConfig(dict.fromkeys(ModeKeys, SaveConfigMode(2)))
    assert SaveConfig(save_interval=2) != SaveConfig()
    assert SaveConfig() != 5
    assert "'TRAIN': SaveConfigMode(save_interval=500" in repr(SaveConfig())


# What smdebug 1.0.34 writes.
OLD_JSON = (
    '{"TRAIN": {"save_interval": 3, "save_steps": [1, 2], "start_step": 1, "end_step": 9}, '
    '"EVAL": null, "PREDICT": null, "GLOBAL": null}'
)


def test_json_makes_a_round_trip_and_is_that_of_old() -> None:
    given = config(TRAIN=SaveConfigMode(3, 1, 9, [1, 2]))
    assert given.to_json() == OLD_JSON
    assert SaveConfig.from_json(OLD_JSON) == given
    assert SaveConfig.from_json(SaveConfig().to_json().encode()) == SaveConfig()
    assert SaveConfig.from_json("{}") == SaveConfig({})


@pytest.mark.parametrize("text", ["", "[]", "null", '{"TRAIN": ', '{"TRAIN": 3}', '{"train": {}}'])
def test_json_of_anything_else_is_rejected(text: str) -> None:
    with pytest.raises(SMDebugValueError):
        SaveConfig.from_json(text)


CALLS: dict[str, Callable[[], object]] = {
    "SaveConfigMode(save_interval=0).should_save_step(3)": lambda: SaveConfigMode(0),
    "SaveConfigMode(save_interval=-2).should_save_step(4)": lambda: SaveConfigMode(
        save_interval=-2
    ).should_save_step(4),
    "SaveConfigMode(save_steps='1,2')": lambda: SaveConfigMode(save_steps="1,2"),  # type: ignore[arg-type]  # the error is the point
    "SaveConfigMode(save_steps=[1.5])": lambda: SaveConfigMode(save_steps=[1.5]),  # type: ignore[list-item]  # the error is the point
    "SaveConfigMode(save_interval='x')": lambda: SaveConfigMode(save_interval="x"),
    "SaveConfig({TRAIN: mode}).should_save_step(EVAL, 0)": lambda: config(
        TRAIN=SaveConfigMode()
    ).should_save_step(EVAL, 0),
    "SaveConfig({'TRAIN': mode})": lambda: SaveConfig({"TRAIN": SaveConfigMode()}),  # type: ignore[dict-item]  # the error is the point
    "SaveConfig.parse(5)": lambda: SaveConfig.parse(5),
    "SaveConfig.from_dict({'train': {}})": lambda: SaveConfig.from_dict({"train": {}}),
    "SaveConfig.from_dict({'TRAIN': {'save_interval': 2}}).to_json_dict()": lambda: (
        SaveConfig.from_dict({"TRAIN": {"save_interval": 2}}).to_json_dict()
    ),
    "SaveConfig().to_json_dict()": lambda: SaveConfig().to_json_dict(),
}
# Where the old library failed by accident, ours says what is wrong.
OTHER_ERRORS = {
    "SaveConfigMode(save_interval=0).should_save_step(3)": "SMDebugValueError",
    "SaveConfig.from_dict({'train': {}})": "SMDebugValueError",
}


@pytest.mark.parametrize("call", CALLS)
def test_calls_are_answered_as_recorded(call: str) -> None:
    expected = dict(recorded("calls"))[call]
    got = answers.within(CALLS[call], 20)
    if call in OTHER_ERRORS:
        assert not agrees(expected, got)
        assert classes(got)[0] == OTHER_ERRORS[call]
    else:
        assert agrees(expected, got)
