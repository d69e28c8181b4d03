"""Reader of histories in Parquet files, through pyarrow."""

import io
from typing import Final

from rule_core.sources.documents.document_source import DocumentError, IncompleteDocumentError
from rule_core.sources.documents.history_format import HistoryFormat
from rule_core.sources.format import SourceFolder
from rule_core.storage.size_limit import check_file_size

_MAGIC: Final = b"PAR1"


def decode(data: bytes, is_cut: bool = False) -> object:
    """Return the columns by name.

    Raises
    ------
    DocumentError
        If they cannot be read, or pyarrow is absent.
    """
    del is_cut
    if data[-len(_MAGIC) :] != _MAGIC:
        raise IncompleteDocumentError(f"it is not a complete Parquet file ({len(data)} bytes)")
    return _read(data, with_rows=True)


def _read(data: bytes, *, with_rows: bool) -> object:
    """Return the columns of a file; `data` may be its end if the names are enough."""
    try:
        from pyarrow.parquet import ParquetFile

        file = ParquetFile(io.BytesIO(data))
        if not with_rows:
            return {name: [0.0, 1.0] for name in file.schema_arrow.names}
        groups = map(file.metadata.row_group, range(file.num_row_groups))
        check_file_size("content", sum(group.total_byte_size for group in groups))
        return file.read().to_pydict()
    except ImportError as err:
        raise DocumentError("Parquet needs pyarrow: pip install 'rule-runner[parquet]'") from err
    except (OSError, ValueError, NotImplementedError) as err:  # as those of pyarrow
        raise DocumentError(f"its columns cannot be read: {err}".rstrip(".")) from err


def _look(folder: SourceFolder, name: str) -> object:
    is_parquet = folder.head(name).startswith(_MAGIC)
    return _read(folder.tail(name), with_rows=False) if is_parquet else None


FORMAT: Final = HistoryFormat("parquet", r".*\.parquet", decode, _look)
