"""Trial files as bytes and as typed records: index, event files, collections, reductions."""
