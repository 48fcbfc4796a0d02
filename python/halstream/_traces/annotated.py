"""Annotations of a program on the tracks of its timeline."""

from __future__ import annotations

from .annotations import Annotation
from .timeline import Slice, Timeline

__all__ = ["annotate"]


def annotate(timeline: Timeline, annotations: list[Annotation]) -> None:
    """Put annotations on tracks of a timeline: a row for each thread and depth of nesting."""
    ends: dict[str, list[int]] = {}  # of each thread: where the last range of each row ends
    for number, one in enumerate(sorted(annotations, key=lambda a: (a.begin, -a.end))):
        rows = ends.setdefault(one.thread, [])
        lane = next((at for at, end in enumerate(rows) if end <= one.begin), len(rows))
        rows[lane : lane + 1] = [one.end]
        track = timeline.track("annotations", one.thread, lane=lane)
        shown = Slice(track, "annotation", one.text, one.begin, one.end, number)
        shown.instant = one.begin == one.end
        timeline.slices.append(shown)
