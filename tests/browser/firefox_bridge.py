"""Between Playwright and a Firefox older than it expects: hands WebDriver BiDi on, and answers the
commands that this Firefox does not know.

    python tests/browser/firefox_bridge.py FIREFOX OPTIONS...

Playwright starts it as if it were Firefox, and reads the address from its last line. What is not
known (the colour scheme, which a preference sets here) is nothing that the tests ask about.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application
from tornado.websocket import WebSocketHandler, websocket_connect

UNKNOWN = {"emulation.setMediaFeaturesOverride"}
LISTENING = re.compile(r"(WebDriver BiDi listening on )(ws:\S+)")


class Bridge(WebSocketHandler):
    """One connection of Playwright's, and the one to Firefox that it is handed on to."""

    def initialize(self, address: str) -> None:
        self.address = address

    def check_origin(self, origin: str) -> bool:
        return True

    async def open(self, *_: str) -> None:
        self.firefox = await websocket_connect(f"{self.address}/session", max_message_size=2**30)
        self.back = asyncio.ensure_future(self.hand_back())

    async def hand_back(self) -> None:
        while (message := await self.firefox.read_message()) is not None:
            await self.write_message(message)
        self.close()

    async def on_message(self, message: str | bytes) -> None:
        command = json.loads(message)
        if command["method"] in UNKNOWN:
            await self.write_message(
                json.dumps({"type": "success", "id": command["id"], "result": {}})
            )
        else:
            await self.firefox.write_message(message)

    def on_close(self) -> None:
        self.firefox.close()


async def main(command: list[str]) -> int:
    firefox = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    found = next(filter(None, map(LISTENING.search, firefox.stderr)), None)
    if not found:
        return firefox.wait() or 1
    threading.Thread(target=firefox.stderr.read, daemon=True).start()  # a full pipe would stop it
    sockets = bind_sockets(0, "127.0.0.1")
    HTTPServer(
        Application([("/session", Bridge, {"address": found[2]})], websocket_max_message_size=2**30)
    ).add_sockets(sockets)
    print(f"{found[1]}ws://127.0.0.1:{sockets[0].getsockname()[1]}", file=sys.stderr, flush=True)
    return await asyncio.to_thread(firefox.wait)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
