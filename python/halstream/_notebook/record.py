"""Records what streams do in a block, for a picture of it."""

from __future__ import annotations

import os
from types import TracebackType

from .. import _native
from .._traces.annotated import annotate
from .._traces.recording import Recording
from .._traces.timeline import Timeline, lay_out
from . import timeline as _timeline
from .markup import Markup, element

__all__ = ["record"]


class record:
    """Record the operations of all streams in a block, for a picture of when they ran.

    The end of the block waits for pending work, for at most 2 s. A notebook shows
    the picture where the object is the last value of a cell. On a backend that does
    not report when operations ran, they are shown where they were enqueued.

    Examples
    --------
    >>> import halstream as hs
    >>> a, b = hs.Stream(), hs.Stream()
    >>> with hs.testing.record() as recorded:
    ...     a.call(sum, [1, 2])
    ...     b.wait(a.record())
    ...     b.call(sum, [3, 4])
    >>> recorded.svg().startswith("<svg")
    True
    """

    def __init__(self) -> None:
        self._recording: Recording | None = None
        self._laid_out: Timeline | None = None

    def __enter__(self) -> record:
        if self._recording is not None:
            raise RuntimeError("this record is in use, or was used; make another one")
        _native.backend()  # opens it: the recording begins here and not at the next call
        self._recording = Recording()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._recording is not None
        operations, executed = self._recording.finish()
        self._laid_out = lay_out(operations, executed)
        annotate(self._laid_out, self._recording.annotations)

    def svg(self, width: int = 960, memory: bool = False) -> str:
        """Return the picture as SVG, which stands alone.

        Parameters
        ----------
        width : int
            Pixels.
        memory : bool
            Whether the lives of blocks of memory have rows, too.

        Raises
        ------
        RuntimeError
            If the block has not ended.
        """
        if self._laid_out is None:
            raise RuntimeError("the block has not ended, so that there is no timeline yet")
        return _timeline.svg(self._laid_out, width, memory)

    def save(self, path: str | os.PathLike[str], memory: bool = False) -> None:
        """Write the picture to a file: SVG, or a page where the name ends in ``.html``."""
        picture = self.svg(memory=memory)
        if os.fspath(path).endswith((".html", ".htm")):
            head = element("head", Markup('<meta charset="utf-8">'), element("title", "timeline"),
                           element("style", ":root{color-scheme:light dark}body{font-family:sans-serif}"))  # fmt: skip
            picture = "<!DOCTYPE html>\n" + element("html", head, element("body", Markup(picture)), lang="en")
        with open(path, "w", encoding="utf-8") as file:
            file.write(picture + "\n")

    def _repr_html_(self) -> str:
        return self.svg()
