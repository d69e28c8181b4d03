"""Ask a trial one recorded question, and write the answer as JSON; works with any smdebug."""

import enum
import hashlib
import math
import signal
from collections.abc import Callable, KeysView, Mapping, ValuesView
from types import FrameType
from typing import Any

import numpy as np

Json = Any


class BlockedError(BaseException):
    """The call had not returned in time; no ``except Exception`` catches it."""


def encode(value: object) -> Json:
    """Return `value` as JSON, in the encoding of the recorded answers."""
    if isinstance(value, (np.ndarray, np.generic)):
        return _encode_numpy(value)
    if isinstance(value, (list, tuple, set, frozenset, KeysView, ValuesView, Mapping)):
        return _encode_container(value)
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return _encode_scalar(value)
    return _encode_object(value)


def _encode_scalar(value: complex | str | None) -> Json:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
    if isinstance(value, complex):
        return {"$complex": [_encode_scalar(value.real), _encode_scalar(value.imag)]}
    return value


def _encode_container(value: object) -> Json:
    match value:
        case tuple():
            return {"$tuple": [encode(item) for item in value]}
        case set() | frozenset():
            return {"$set": sorted((encode(item) for item in value), key=str)}
        case KeysView() | ValuesView():
            return {"$view": type(value).__name__, "items": [encode(item) for item in value]}
        case Mapping():
            return {"$dict": [[encode(key), encode(item)] for key, item in value.items()]}
    return [encode(item) for item in value]  # type: ignore[attr-defined] # a list is left


def _encode_numpy(value: "np.ndarray | np.generic") -> Json:
    if isinstance(value, np.ndarray):
        return {"$nd": _encode_array(value)}
    hexed = value.tobytes().hex()
    return {"$np": {"dtype": value.dtype.str, "hex": hexed, "value": encode(value.item())}}


def _encode_array(array: np.ndarray) -> Json:
    content = np.ascontiguousarray(array).tobytes() if array.dtype.kind != "O" else b""
    encoded: dict[str, Json] = {
        "shape": list(array.shape),
        "dtype": array.dtype.str,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    if array.size <= 8:
        encoded["values"] = [encode(one) for one in array.reshape(-1).tolist()]
    return encoded


def _encode_object(value: object) -> Json:
    name = type(value).__name__
    if isinstance(value, enum.Enum):
        return {"$stepstate" if "State" in name else "$mode": value.name}
    if name == "Tensor":
        return {"$tensor": value.name}  # type: ignore[attr-defined] # a Tensor of either library
    if "Collection" in name:
        return {"$collection": {key: _config(getattr(value, key)) for key in COLLECTION_FIELDS}}
    return {"$repr": name}


COLLECTION_FIELDS = (
    "name",
    "include_regex",
    "tensor_names",
    "reduction_config",
    "save_config",
    "save_histogram",
)


def _config(value: Any) -> Json:
    """Return a field of a collection; the old library has classes for the configurations."""
    if hasattr(value, "to_json_dict"):
        return value.to_json_dict()
    return sorted(value) if isinstance(value, (set, frozenset)) else value


def encode_exception(err: BaseException) -> Json:
    """Return what is recorded of a call that raised."""
    mro = [_known_name(kind) for kind in type(err).__mro__[:-2]]
    return {"$exc": {"type": mro[0], "mro": mro, "str": str(err)[:400]}}


def decode(value: Json, modes: Mapping[str, object]) -> Any:
    """Return an argument of a recorded question; `modes` has the enum's members by name."""
    match value:
        case {"$mode": name}:
            return modes[name]
        case {"$tuple": items}:
            return tuple(decode(item, modes) for item in items)
        case {"$float": text}:
            return float(text)
        case list():
            return [decode(item, modes) for item in value]
        case _:
            return value


def ask(trial: Any, query: Mapping[str, Json], modes: Mapping[str, object], seconds: float) -> Json:
    """Return the encoded answer to one recorded question."""
    return within(lambda: call(trial, query, modes), seconds)


def call(trial: Any, query: Mapping[str, Json], modes: Mapping[str, object]) -> Any:
    """Ask one recorded question."""
    target = trial if query["on"] == "trial" else trial.tensor(query["name"])
    name = query["call"]
    if name.startswith("attr:"):
        return getattr(target, name.removeprefix("attr:"))
    args = [decode(item, modes) for item in query.get("args", [])]
    kwargs = {key: decode(item, modes) for key, item in query.get("kwargs", {}).items()}
    if name == "tensor_names_of_collection_object":
        return trial.tensor_names(collection=trial.collection(args[0]))
    return getattr(target, name)(*args, **kwargs)


def within(function: Callable[[], object], seconds: float) -> Json:
    """Return the encoded result of a call, its exception, or that it took too long."""

    def expire(_signal: int, _frame: FrameType | None) -> None:
        raise BlockedError

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return encode(function())
    except BlockedError:
        return {"$blocks": seconds}
    except Exception as err:  # noqa: BLE001 - the exception is the answer
        return encode_exception(err)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _known_name(kind: type[BaseException]) -> str:
    """Return a class's name; Python 3.13 gave one of the recorded ones another."""
    name = f"{kind.__module__}.{kind.__name__}"
    return "re.error" if name == "re.PatternError" else name
