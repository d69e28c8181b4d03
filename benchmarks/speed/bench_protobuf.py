"""Run a script that uses smdebug 1.0.34 with a protobuf of today, whose parser is compiled.

The older library's generated modules fill descriptors by hand, which only protobuf's parser in
Python allows. What they describe is in them, serialized: this makes the modules anew from that, as
today's compiler would.

    python bench_protobuf.py SCRIPT [ARGUMENT...]
"""

import ast
import importlib.abc
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = "smdebug.core.tfevent.proto"


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the generated modules, and makes them anew."""

    def find_spec(self, name: str, path: Sequence[str] | None, _: Any = None) -> ModuleSpec | None:
        """Return the spec of a generated module, None for any other."""
        package, _, module = name.rpartition(".")
        if package != PACKAGE or not module.endswith("_pb2") or not path:
            return None
        return importlib.util.spec_from_loader(name, self, origin=f"{path[0]}/{module}.py")

    def exec_module(self, module: ModuleType) -> None:
        """Make a module from what is described in its file."""
        from google.protobuf import descriptor_pool
        from google.protobuf.internal import builder

        tree = ast.parse(Path(str(module.__spec__ and module.__spec__.origin)).read_text("utf-8"))
        described = b""
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
                for one in node.names:
                    importlib.import_module(f"{PACKAGE}.{one.name}")
            if isinstance(node, ast.keyword) and node.arg == "serialized_pb":
                described = ast.literal_eval(node.value)
        names = vars(module)
        names["DESCRIPTOR"] = descriptor_pool.Default().AddSerializedFile(described)
        builder.BuildMessageAndEnumDescriptors(names["DESCRIPTOR"], names)
        builder.BuildTopDescriptorsAndMessages(names["DESCRIPTOR"], module.__name__, names)


if __name__ == "__main__":
    sys.meta_path.insert(0, Finder())
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
