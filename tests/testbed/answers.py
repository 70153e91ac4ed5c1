"""An HTTP server that gives the answers it was told to, and remembers what it was asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Said:
    """One answer."""

    content: bytes = b"{}"
    kind: str = "application/json"
    status: int = 200
    after_s: float = 0.0
    before_each_byte_s: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    path: str
    headers: Mapping[str, str]


@contextmanager
def answering(answers: Mapping[str, Said]) -> Iterator[tuple[str, list[Asked]]]:
    """Yields address and requests so far; 404 in HTML for a path that is not in ``answers``."""
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(Asked(self.path, dict(self.headers)))
            said = answers.get(self.path, Said(b"<html>no such page</html>", "text/html", 404))
            time.sleep(said.after_s)
            self.send_response(said.status)
            self.send_header("Content-Type", said.kind)
            self.send_header("Content-Length", str(len(said.content)))
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.end_headers()
            for at in range(len(said.content) if said.before_each_byte_s else 0):
                time.sleep(said.before_each_byte_s)
                self.wfile.write(said.content[at : at + 1])
                self.wfile.flush()
            if not said.before_each_byte_s:
                self.wfile.write(said.content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
