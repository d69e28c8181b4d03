"""Reader of histories in ``.npz`` files: arrays by name, as `numpy.savez` writes them."""

import io
import math
import struct
import tokenize
import zipfile
import zlib
from contextlib import suppress
from typing import Final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rule_core.sources.documents.document_source import DocumentError, IncompleteDocumentError
from rule_core.sources.documents.history_format import HistoryFormat
from rule_core.sources.format import HEAD_BYTES, SourceFolder
from rule_core.storage.size_limit import check_file_size

# The arrays of Stable-Baselines3's evaluations, and how it calls their means in other logs.
_EVALUATIONS: Final = {"results": "eval/mean_reward", "ep_lengths": "eval/mean_ep_length"}
_DAMAGE: Final = (
    ValueError,
    EOFError,
    NotImplementedError,  # another compression
    OSError,
    RuntimeError,  # a password
    SyntaxError,  # in the header of an array, as the next ones
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


def decode(data: bytes, is_cut: bool = False) -> object:
    """Return the numbers of arrays by name; with more axes, the means over all but the first.

    Raises
    ------
    DocumentError
        If an array cannot be read.
    StorageUnavailableError
        If the arrays have more bytes than may be read at once.
    """
    del is_cut
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise IncompleteDocumentError(f"it is not a complete .npz file ({len(data)} bytes)")
    lists: dict[str, object] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            check_file_size("content", sum(member.file_size for member in archive.infolist()))
            for name, member in zip(_names(archive), archive.infolist(), strict=True):
                array = _array(archive.read(member))
                if array.ndim and array.size:
                    lists[name] = array.reshape(len(array), -1).mean(1).tolist()
    except _DAMAGE as err:
        raise DocumentError(f"its arrays cannot be read: {err}".rstrip(".")) from err
    return lists


def _names(archive: zipfile.ZipFile) -> list[str]:
    names = [member.removesuffix(".npy") for member in archive.namelist()]
    is_evaluation = {"timesteps", "results"} <= {*names}
    return [_EVALUATIONS.get(name, name) if is_evaluation else name for name in names]


def _array(data: bytes) -> NDArray[np.float64]:
    """Return the numbers of an array; none if it holds texts."""
    file = io.BytesIO(data)
    is_first_version = npy.read_magic(file) == (1, 0)
    read_header = npy.read_array_header_1_0 if is_first_version else npy.read_array_header_2_0
    shape, is_fortran, dtype = read_header(file)
    if dtype.hasobject:
        raise DocumentError(
            "it holds pickled objects, which are never opened; save arrays of numbers"
        )
    if dtype.kind not in "iuf" or not math.prod(shape):
        return np.empty(0)
    numbers = np.frombuffer(data, dtype, math.prod(shape), file.tell())
    return numbers.reshape(shape, order="F" if is_fortran else "C").astype(np.float64)


def _look(folder: SourceFolder, name: str) -> object:
    """Return the arrays of a small file; of a large one, which names it has."""
    tail = folder.tail(name)
    if len(tail) < HEAD_BYTES:
        return decode(tail)
    with suppress(*_DAMAGE), zipfile.ZipFile(io.BytesIO(tail)) as archive:
        return {name: [0.0, 1.0] for name in _names(archive)}
    return None


FORMAT: Final = HistoryFormat("npz", r".*\.npz", decode, _look)
