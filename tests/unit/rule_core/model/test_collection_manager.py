from typing import Any

import pytest

from rule_core.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError
from rule_core.model.collection import Collection
from rule_core.model.collection_manager import CollectionManager


def test_collections_keep_the_order_in_which_they_were_made() -> None:
    manager = CollectionManager(["z", Collection("a", "x")])
    manager.get("m")
    manager.add("b")
    manager.add(Collection("z", "new"))
    assert [one.name for one in manager] == ["z", "a", "m", "b"]
    assert list(manager.get_collections()) == ["z", "a", "m", "b"]


def test_an_object_replaces_and_a_name_does_not() -> None:
    manager = CollectionManager([Collection("a", "old")])
    manager.add("a")
    assert manager.get("a") == Collection("a", "old")
    new = Collection("a", "new")
    manager.add(new)
    assert manager.get("a") is new


def test_a_collection_is_made_when_it_is_asked_for() -> None:
    manager = CollectionManager()
    made = manager.get("a")
    assert made == Collection("a")
    assert manager.get("a", create=False) is made
    with pytest.raises(SMDebugError, match=r"^Collection 'b' was not created\.$"):
        manager.get("b", create=False)
    assert ("a" in manager, "b" in manager) == (True, False)


def test_the_dictionary_is_the_callers() -> None:
    manager = CollectionManager(["a"])
    manager.get_collections().clear()
    assert "a" in manager


def test_only_collections_are_added() -> None:
    wrong: Any = 5
    with pytest.raises(SMDebugTypeError, match=r"^A collection must be .*, got 5\.$"):
        CollectionManager().add(wrong)


def test_workers_are_counted() -> None:
    manager = CollectionManager()
    assert manager.get_num_workers() == 1
    manager.set_num_workers(3)
    assert manager.get_num_workers() == 3
    with pytest.raises(SMDebugValueError, match=r"^The number of workers must .* 1, got 0\.$"):
        manager.set_num_workers(0)
