"""The journal of a long run: append-only JSON lines, one for each finished item, so that a run that was killed goes on where it was."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dpcipher.errors import ParameterError


class Journal:
    """Finished items of one run. The first line holds its settings; a journal of other settings is refused with `refusal`."""

    def __init__(self, path: Path, settings: Mapping[str, Any], *, refusal: str) -> None:
        self.path, self._settings = path, json.loads(json.dumps(settings))
        if path.exists():
            self._cut_torn_line()
        if next(self._lines(), None) is None:
            self.append(self._settings)
        elif next(self._lines()) != self._settings:
            raise ParameterError(refusal)

    def finished(self) -> Iterator[dict[str, Any]]:
        """The finished items, in the order they were appended."""
        lines = self._lines()
        next(lines)
        return lines

    def append(self, item: Mapping[str, Any]) -> None:
        """Add one line, synced to disk before the item counts as finished."""
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "ab") as sink:
            sink.write(json.dumps(item).encode() + b"\n")
            sink.flush()
            os.fsync(sink.fileno())

    def _lines(self) -> Iterator[dict[str, Any]]:
        if self.path.exists():
            with self.path.open("rb") as source:
                yield from map(json.loads, source)

    def _cut_torn_line(self) -> None:
        """Cut off the last line where a killed run left only part of it."""
        os.truncate(self.path, self.path.read_bytes().rfind(b"\n") + 1)
