"""Rows for the programs by shape: found in one run, silent twins, schedules, tokens, lines put in literally."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "tests" / part) for part in ("", "trust")]

import halstream as hs  # noqa: E402
from copies_help import racy, random_program, reported  # noqa: E402
from corpus.host_threads import PROGRAMS  # noqa: E402
from corpus.shapes import SHAPES  # noqa: E402
from corpus.synchronisation import SYNCHRONISATION, Shape  # noqa: E402
from shape_help import (  # noqa: E402
    fails,
    found,
    found_strictly,
    reaches_explained_stall,
    report_of,
    silenced,
    silent,
    token_of,
)
from test_sanitize_undeclared import run_program  # noqa: E402
from trust_rows import Figure, all_of, least_of, repeat  # noqa: E402


def shapes_found(quick: bool) -> list[Figure]:
    """One run of each program in the order of the calls."""
    n = len(SHAPES)
    runs = {shape: found(shape) for shape in SHAPES}
    strict = sum(runs[shape] or found_strictly(shape) for shape in SHAPES)
    silent = sum(not report_of(shape.fixed).all for shape in SHAPES)
    return [
        least_of("programs by shape reported, one `fifo` run each", sum(runs.values()), n, n - n // 30),
        least_of("reported, or stopped in strict mode for a function of unknown accesses", strict, n, n - n // 30),
        all_of("their twins not reported", silent, n),
        *_found_by_pages(),
    ]


def _found_by_pages() -> list[Figure]:
    """One run of each program with the pages of memory watched, which shows accesses that nobody declares."""
    n = len(SHAPES)
    what = "with `pages=True`: programs by shape reported, one `fifo` run each"
    strictly = "reported, or stopped in strict mode, with `strict=True, pages=True`"
    twins = "with `pages=True`: their twins not reported"
    try:
        reports = [report_of(shape.broken, pages=True) for shape in SHAPES]
        strict = sum(found_strictly(shape, pages=True) for shape in SHAPES)
        silent = sum(not report_of(shape.fixed, pages=True).all for shape in SHAPES)
    except hs.NotSupportedError as exc:
        return [Figure(row, f"{n} of {n}", f"not possible: {exc}", False) for row in (what, strictly, twins)]
    reported = sum(bool(report.races or report.refills) for report in reports)
    return [all_of(what, reported, n), all_of(strictly, strict, n), all_of(twins, silent, n)]


def shapes_mended(quick: bool) -> list[Figure]:
    """The lines that the reports suggest, put into the programs as they are."""
    reported = [shape for shape in SHAPES if found(shape)]
    with tempfile.TemporaryDirectory() as folder:
        quiet = sum(silenced(shape, Path(folder)) for shape in reported)
    n = len(reported)
    return [least_of("of the reported, silenced by the suggested lines put in literally", quiet, n, n * 98 // 100)]


def shapes_explored(quick: bool) -> list[Figure]:
    """Fifty schedules of each program that a schedule can let fail, and its token again."""
    possible = [shape for shape in SHAPES if shape.schedule]
    tokens = {shape: token_of(shape.broken) for shape in possible}
    failing = [shape for shape, token in tokens.items() if token]
    count = repeat(quick, 20)
    again = sum(all(fails(shape.broken, tokens[shape]) for _ in range(count)) for shape in failing)
    twins = sum(not token_of(shape.fixed) for shape in SHAPES)
    return [
        all_of("programs by shape that fail within 50 schedules", len(failing), len(possible)),
        all_of(f"tokens of these that fail again {count} times of {count}", again, len(failing)),
        all_of("their twins that pass 50 schedules", twins, len(SHAPES)),
    ]


def threads_explored(quick: bool) -> list[Figure]:
    """Fifty schedules, host threads included, of each program in which these race, and its token again."""
    n = len(PROGRAMS)
    tokens = {program: token_of(program.broken, threads=True) for program in PROGRAMS}
    failing = [program for program, token in tokens.items() if token]
    count = repeat(quick, 20)
    again = sum(all(fails(program.broken, tokens[program]) for _ in range(count)) for program in failing)
    twins = sum(not token_of(program.fixed, threads=True) for program in PROGRAMS)
    return [
        all_of("programs with a race of host threads that fail within 50 schedules of these", len(failing), n),
        all_of(f"tokens of these, too, that fail again {count} times of {count}", again, len(failing)),
        all_of("their twins that pass 50 such schedules", twins, n),
    ]


def _found_somehow(program: Shape) -> bool:
    """Whether one run reports the broken program or says that it never ends, or one of 50 schedules lets it fail."""
    if program.found == "stall":
        return reaches_explained_stall(program)
    return found(program) or bool(token_of(program.broken, threads=program.found == "threads"))


def synchronisation(quick: bool) -> list[Figure]:
    """Barriers, values, events, queries, locks, callbacks and captures that are used wrongly."""
    n = len(SYNCHRONISATION)
    once = sum(program.found != "stall" and found(program) for program in SYNCHRONISATION)
    somehow = sum(_found_somehow(program) for program in SYNCHRONISATION)
    quiet = sum(silent(program) for program in SYNCHRONISATION)
    passing = sum(not token_of(program.fixed, threads=program.found == "threads") for program in SYNCHRONISATION)
    at_once = sum(program.found == "always" for program in SYNCHRONISATION)
    return [
        least_of("programs that synchronise wrongly reported, one `fifo` run each", once, n, at_once),
        all_of("reported, failed within 50 schedules, or explained as stuck", somehow, n),
        all_of("their twins not reported", quiet, n),
        all_of("their twins that pass 50 schedules", passing, n),
    ]


def random_undeclared(quick: bool) -> list[Figure]:
    """Random programs whose functions declare nothing, and whose conflicts are all ordered."""
    n = repeat(quick, 2000)
    silent = sum(not run_program(seed, leave_out=False)[0].all for seed in range(10_000, 10_000 + n))
    return [all_of("random programs without a race, of functions that declare nothing, without a report", silent, n)]


def random_copies(quick: bool) -> list[Figure]:
    """Random programs of copies and fills of all kinds of memory against an oracle of the vendor's table."""
    n = repeat(quick, 500)
    programs = [random_program(seed) for seed in range(n)]
    right = sum(reported(program) is racy(program) for program in programs)
    what = "random programs of pageable, pinned and managed copies reported just where the vendor's table has a race"
    return [all_of(what, right, n)]


BY_SHAPE = [shapes_found, shapes_mended, shapes_explored, threads_explored, random_undeclared, random_copies]
SYNCHRONISING = [synchronisation]
