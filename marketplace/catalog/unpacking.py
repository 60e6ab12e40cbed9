"""Bytes off the wire to the bytes of a body: one encoding layer at most, capped on both sides."""

from __future__ import annotations

import zlib
from typing import Protocol

from marketplace.catalog.failures import Damaged, Refused, TooLarge


class Unpacker(Protocol):
    @property
    def wire_bytes(self) -> int:
        """Bytes that came so far, still packed."""

    def feed(self, chunk: bytes) -> bytes:
        """What a chunk adds to the body. Raises TooLarge as soon as a cap is passed."""

    def finish(self) -> None:
        """Raises Damaged when the body has not come to its end."""


def unpacker(content_encoding: str, wire_cap: int, body_cap: int) -> Unpacker:
    """Raises Refused for anything but plain and a single layer of gzip."""
    match content_encoding.strip().lower():
        case "" | "identity":
            return Plain(min(wire_cap, body_cap))
        case "gzip" | "x-gzip":
            return Gzip(wire_cap, body_cap)
    raise Refused("the answer is packed in another way than one layer of gzip")


class Plain:
    def __init__(self, cap: int) -> None:
        self.wire_bytes, self._cap = 0, cap

    def feed(self, chunk: bytes) -> bytes:
        self.wire_bytes += len(chunk)
        if self.wire_bytes > self._cap:
            raise TooLarge(f"more than {self._cap} bytes")
        return chunk

    def finish(self) -> None:
        """Nothing marks the end of a plain body."""


class Gzip:
    """Asks zlib for no more than one byte over the cap, so a bomb never unfolds in memory."""

    def __init__(self, wire_cap: int, body_cap: int) -> None:
        self._wire, self._body_cap, self._room = Plain(wire_cap), body_cap, body_cap
        self._stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    @property
    def wire_bytes(self) -> int:
        return self._wire.wire_bytes

    def feed(self, chunk: bytes) -> bytes:
        try:
            unpacked = self._stream.decompress(self._wire.feed(chunk), self._room + 1)
        except zlib.error as error:
            raise Damaged("the body is not the gzip that its header announces") from error
        self._room -= len(unpacked)
        if self._room < 0:
            raise TooLarge(f"more than {self._body_cap} bytes once unpacked")
        return unpacked

    def finish(self) -> None:
        if not self._stream.eof or self._stream.unused_data:
            raise Damaged("the gzip body does not end where the answer does")
