"""The journal of a long experiment: append-only JSON lines, one for each finished cell, so that a killed run can go on."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpcipher.errors import ParameterError
from dpcipher.release.curator_only import WATERMARK, private_folder

NAME = "cells.jsonl"


class Journal:
    """Finished cells of one experiment, in a folder that only its owner can open."""

    def __init__(self, folder: str | Path, request: Mapping[str, Any]) -> None:
        self.path = private_folder(folder) / NAME
        self._head = {"watermark": WATERMARK, "request": json.loads(json.dumps(request))}
        self.finished: list[dict[str, Any]] = self._read() if self.path.exists() else self._begin()

    def append(self, cell: Mapping[str, Any]) -> None:
        """One line, synced to disk before the next cell counts as finished."""
        self._write(cell)
        self.finished.append(dict(cell))

    def _begin(self) -> list[dict[str, Any]]:
        self._write(self._head)
        return []

    def _read(self) -> list[dict[str, Any]]:
        """The finished cells; a torn last line, from a killed run, is cut off."""
        whole = self.path.read_bytes()
        kept = whole[: whole.rfind(b"\n") + 1]
        lines = [json.loads(line) for line in kept.splitlines()]
        if not lines:
            self.path.unlink()
            return self._begin()
        if lines[0] != self._head:
            raise ParameterError(
                f"out ({self.path.parent}) holds another comparison (other data, methods, seed or unit); name another folder"
            )
        if len(kept) < len(whole):
            os.truncate(self.path, len(kept))
        return lines[1:]

    def _write(self, line: Mapping[str, Any]) -> None:
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "ab") as sink:
            sink.write(json.dumps(line).encode() + b"\n")
            sink.flush()
            os.fsync(sink.fileno())
