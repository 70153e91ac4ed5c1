"""Plays a Kubernetes API server for one spark-submit: takes what is created, and starts nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

NOTHING = b'{"kind": "List", "apiVersion": "v1", "items": []}'
DONE = b'{"kind": "Status", "apiVersion": "v1", "status": "Success"}'


class Api(ThreadingHTTPServer):
    """Answers ``recorded`` for its paths, else empty lists; echoes what is posted, with a uid."""

    daemon_threads = True

    def __init__(self, recorded: Mapping[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.recorded = recorded
        self.pods: list[dict[str, Any]] = []
        """What it was asked to make."""
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Api

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if self.headers.get("Upgrade"):
            self._say(b"", 503)  # no web socket here: the client then asks over plain HTTP
        elif parse_qs(asked.query).get("watch") == ["true"]:
            self._watch()
        else:
            self._say(self.server.recorded.get(asked.path, NOTHING))

    def do_POST(self) -> None:
        made = json.loads(self._body())
        made["metadata"] = {"uid": f"uid-{len(self.server.pods)}", "namespace": "default", **made["metadata"]}
        if made["kind"] == "Pod":
            self.server.pods.append(made)
        self._say(json.dumps(made).encode(), 201)

    def do_DELETE(self) -> None:
        self._body()
        self._say(DONE)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _watch(self) -> None:
        """Nothing ever happens."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        self.server.over.wait()

    def _say(self, content: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def kubernetes_api(recorded: Mapping[str, bytes]) -> Iterator[Api]:
    """A running :class:`Api`, gone with the block."""
    with Api(recorded) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
