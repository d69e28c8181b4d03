"""A program: a server that answers as the API of Kubernetes does; it ends with its input.

It runs under the Python that RULE_RUNNER_KUBERNETES_PYTHON names.
"""

import asyncio
import sys
from typing import Any

import kmock


class Server(kmock.KubernetesEmulator):
    """The library's server, with what kubectl reads and the library leaves out."""

    async def _serve_version(self, request: Any) -> Any:
        """Name the version of the core group without a slash."""
        payload = await super()._serve_version(request)
        return payload | {"groupVersion": payload["groupVersion"].removeprefix("/")}

    async def _serve_list(self, request: Any) -> Any:
        """Say what the list holds."""
        group, version = request.resource.group, request.resource.version
        head = {"kind": "List", "apiVersion": f"{group}/{version}" if group else version}
        return await super()._serve_list(request) | head


async def main() -> None:
    async with Server() as handler, kmock.Server(handler):
        handler.resources.load_bundled()
        print(handler.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
