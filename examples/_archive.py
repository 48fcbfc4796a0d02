"""The pipeline's files: which ones, read as one run of bytes, and compared with what was written."""

from __future__ import annotations

import io
import lzma
import struct
import sysconfig
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

#: Before each chunk of the output: its bytes before and after compression.
HEADER = struct.Struct("<II")


class Codec(NamedTuple):
    """Both directions; the modules release the GIL, so streams really run side by side."""

    pack: Callable[[memoryview], bytes]
    unpack: Callable[[bytes], bytes]


CODECS = {
    "zlib": Codec(lambda data: zlib.compress(data, 6), zlib.decompress),
    "lzma": Codec(lambda data: lzma.compress(data, preset=0), lzma.decompress),
}


def choose(names: list[str], limit: int) -> tuple[list[Path], int, list[str]]:
    """Return the files to compress, their bytes, and a sentence for each that cannot be read.

    Every file is read once here: what cannot be read is known before the work
    starts, and all runs find the files in the system's cache.
    """
    library = Path(sysconfig.get_path("stdlib"))
    given = [Path(name) for name in names] or sorted(
        path for path in library.rglob("*.py") if "site-packages" not in path.parts
    )
    files, wrong, total = [], [], 0
    for path in given:
        try:
            size = len(path.read_bytes())
        except OSError as exc:
            wrong.append(f"cannot read {path}: {exc.strerror or exc}")
            continue
        if names or total + size <= limit:
            files.append(path)
            total += size
    return files, total, wrong


class Reader:
    """The files one after another, as one long run of bytes."""

    def __init__(self, files: list[Path]) -> None:
        self._files = iter(files)
        self._open: io.FileIO | None = None

    def fill(self, buffer: memoryview) -> None:
        """Fill the whole buffer; fail if the files have become shorter."""
        done = 0
        while done < len(buffer):
            if self._open is None:
                path = next(self._files, None)
                if path is None:
                    raise OSError("the files became shorter while they were read")
                self._open = io.FileIO(path)
            got = self._open.readinto(buffer[done:])
            if not got:
                self.close()
            done += got or 0

    def close(self) -> None:
        """Close the file that is open, if any."""
        if self._open is not None:
            self._open.close()
            self._open = None


def unpacked(path: Path, codec: Codec) -> Iterator[bytes]:
    """Yield the chunks of an output file, decompressed."""
    with path.open("rb") as file:
        while header := file.read(HEADER.size):
            raw, packed = HEADER.unpack(header)
            data = codec.unpack(file.read(packed))
            if len(data) != raw:
                raise ValueError(f"a chunk of {raw} bytes came back as {len(data)}")
            yield data


def differs(files: list[Path], path: Path, codec: Codec) -> str:
    """Compare the decompressed output with the files; return what is wrong, '' for nothing."""
    rest = b""
    chunks = unpacked(path, codec)
    try:
        for file in files:
            want = file.read_bytes()
            while len(rest) < len(want):
                rest += next(chunks, b"") or _ends(file)
            if rest[: len(want)] != want:
                at = next(i for i, byte in enumerate(want) if rest[i] != byte)
                return f"{file} differs at byte {at}"
            rest = rest[len(want) :]
        return "the output is longer than the input" if rest or next(chunks, b"") else ""
    except (EOFError, ValueError, struct.error, zlib.error, lzma.LZMAError) as exc:
        return f"the output is wrong: {exc}"


def _ends(file: Path) -> bytes:
    raise EOFError(f"it ends before {file} does")
