"""Bolt within WebSockets, as pages in a browser send it: the handshake, behind the guard of HTTP, and the frames."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from condgraph.endpoint.guard import Guard
from condgraph.endpoint.protocol import ProtocolError
from condgraph.engine.errors import MissingExtraError

#: Bytes of the largest message of a client; drivers send parts of 1,400 bytes.
_MOST: Final = 128 << 10


class WebSocketTransport:
    """A transport that writes Bolt as binary messages, and what reads those of the client."""

    def __init__(self, transport: asyncio.Transport, guard: Guard) -> None:
        try:
            from websockets.server import ServerProtocol
        except ImportError:
            raise MissingExtraError("websockets", "serve") from None
        self._transport, self._guard = transport, guard
        self._protocol = ServerProtocol(max_size=_MOST)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def received(self, data: bytes, log: Callable[[str], None]) -> bytes:
        """The Bolt in bytes of the client. Refusals and what is malformed end the connection, and `log` says why."""
        from websockets.frames import Opcode
        from websockets.http11 import Request

        protocol, parts = self._protocol, []
        protocol.receive_data(data)
        for event in protocol.events_received():
            if isinstance(event, Request):
                self._answer(event, log)
            elif event.opcode is Opcode.TEXT:  # type: ignore[union-attr]
                log("a WebSocket sent a text, and Bolt is binary")
                protocol.fail(1003, "Bolt is binary")
            elif event.opcode in (Opcode.BINARY, Opcode.CONT):  # type: ignore[union-attr]
                parts.append(bytes(event.data))  # type: ignore[union-attr]
        self._flush()
        return b"".join(parts)

    def _answer(self, request: Any, log: Callable[[str], None]) -> None:
        protocol = self._protocol
        headers = {name.lower(): ", ".join(request.headers.get_all(name)) for name in request.headers}
        try:
            self._guard.enter("GET", headers)
            response = protocol.accept(request)
        except ProtocolError as problem:
            log(problem.message)
            response = protocol.reject(403, problem.message + "\n")
        protocol.send_response(response)

    def _flush(self) -> None:
        for part in self._protocol.data_to_send():
            if part:
                self._transport.write(part)
            else:
                # The end of what is sent.
                self._transport.close()

    def write(self, data: bytes) -> None:
        """Send bytes as a message."""
        if self._transport.is_closing():
            return
        self._protocol.send_binary(data)
        self._flush()

    def close(self) -> None:
        """Close once all is sent."""
        from websockets.protocol import State

        if self._protocol.state is State.OPEN and not self._transport.is_closing():
            self._protocol.send_close(1000)
            self._flush()
        self._transport.close()
