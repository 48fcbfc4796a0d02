"""Ranks of torch.distributed that wait for each other for ever, and collectives that do not fit: what each is told."""

from __future__ import annotations

from pathlib import Path

import pytest
import ranks

BEGIN = """
start("nccl", seconds=120)
x, y = full(1.0), full(2.0)
dist.all_reduce(x)
torch.cuda.synchronize()
"""


def both(folder: Path, source: str, error: str) -> list[str]:
    """Run a program as both ranks; return what each wrote to stderr, after both ended with the error."""
    results = ranks.endings(folder, BEGIN + source)
    for done in results:
        assert done.returncode == 1 and error in done.stderr, f"{done.stdout}\n{done.stderr}"
    return [done.stderr for done in results]


def line_of(folder: Path, mark: str) -> str:
    """Return the place of the line of the program that ends with a comment."""
    lines = (folder / "program.py").read_text().splitlines()
    return f"program.py:{next(n for n, line in enumerate(lines, 1) if line.endswith('# ' + mark))}"


KIND = """
if rank == 0:
    dist.broadcast(x, 0)  # zero
else:
    dist.all_reduce(x)  # one
torch.cuda.synchronize()
"""

ORDER = """
big = full(3.0, 8)
if rank == 0:
    dist.all_reduce(x)  # zero
    dist.all_reduce(big)
else:
    dist.all_reduce(big)  # one
    dist.all_reduce(x)
torch.cuda.synchronize()
"""

SHAPE = """
if rank == 0:
    dist.all_gather_into_tensor(full(0.0, 8), x)  # zero
else:
    dist.all_gather_into_tensor(full(0.0, 12), full(1.0, 6))  # one
torch.cuda.synchronize()
"""

TYPE = """
x = full(1.0, dtype=torch.float16 if rank == 0 else torch.bfloat16)
if rank == 0:
    dist.all_reduce(x)  # zero
else:
    dist.all_reduce(x)  # one
torch.cuda.synchronize()
"""

SKIPPED = """
if rank == 0:
    dist.all_reduce(x)  # zero
dist.barrier()  # one
"""


@pytest.mark.parametrize(
    ("source", "first", "second"),
    [
        (KIND, "broadcast 2 of group default_pg (Float [4])", "all_reduce 2 of group default_pg (Float [4])"),
        (ORDER, "all_reduce 2 of group default_pg (Float [4])", "all_reduce 2 of group default_pg (Float [8])"),
        (SHAPE, "all_gather 2 of group default_pg (Float [4])", "all_gather 2 of group default_pg (Float [6])"),
        (TYPE, "all_reduce 2 of group default_pg (Half [4])", "all_reduce 2 of group default_pg (BFloat16 [4])"),
        (SKIPPED, "all_reduce 2 of group default_pg (Float [4])", "barrier 2 of group default_pg"),
    ],
    ids=["kind", "order", "shape", "type", "skipped"],
)
def test_F38_collectives_that_do_not_fit_fail_in_both_ranks(
    tmp_path: Path, source: str, first: str, second: str
) -> None:
    for text in both(tmp_path, source, "DistBackendError"):
        assert "Detected mismatch between collectives on ranks." in text, text
        assert f"rank 0 is in {first}, at " in text and f"{line_of(tmp_path, 'zero')} in" in text, text
        assert f"rank 1 is in {second}, at " in text and f"{line_of(tmp_path, 'one')} in" in text, text


GROUPS = """
one, two = dist.new_group([0, 1], group_desc="dp"), dist.new_group([0, 1], group_desc="tp")
if rank == 0:
    dist.all_reduce(x, group=one)  # zero
    torch.cuda.synchronize()
    dist.broadcast(y, 0, group=two)
else:
    dist.broadcast(y, 0, group=two)  # one
    torch.cuda.synchronize()
    dist.all_reduce(x, group=one)
torch.cuda.synchronize()
"""


def test_F39_ranks_that_wait_for_each_other_are_told_the_circle(tmp_path: Path) -> None:
    first, second = both(tmp_path, GROUPS, "this wait can never end: each of these waits for the next")
    zero, one = line_of(tmp_path, "zero"), line_of(tmp_path, "one")
    for text in (first, second):
        assert "StallError" in text, text
        assert "rank 0 waits in all_reduce 1 of group dp, at " in text and f"{zero} in <module>, for rank 1" in text, (
            text
        )
        assert "rank 1 waits in broadcast 1 of group tp, at " in text and f"{one} in <module>, for rank 0" in text, text
    assert first.index("rank 0 waits") < first.index("rank 1 waits"), first
    assert second.index("rank 1 waits") < second.index("rank 0 waits"), second


RECEIVE = """
if rank == 0:
    dist.send(y, 1)
    dist.recv(x, 1)  # zero
else:
    dist.all_reduce(x)  # one
torch.cuda.synchronize()
"""


def test_F39_a_receive_without_a_send_and_a_send_without_a_receive_are_told(tmp_path: Path) -> None:
    for text in both(tmp_path, RECEIVE, "this wait can never end: each of these waits for the next"):
        assert f"{line_of(tmp_path, 'zero')} in <module>, for rank 1" in text, text
        assert "rank 0 waits in recv 2 of group default_pg, at " in text, text
        assert "rank 0 has sent to rank 1 what that has not received" in text, text
        assert "rank 1 waits in all_reduce 2 of group default_pg, at " in text, text
        assert f"{line_of(tmp_path, 'one')} in <module>, for rank 0" in text, text
        assert "Let the other rank send what is received here" in text, text


NEVER = """
from halstream.testing import Gate
if rank == 1:
    gate = Gate(own(torch.cuda.current_stream()))
dist.all_reduce(x)  # reduce
torch.cuda.synchronize()  # wait
"""


def test_F39_a_stream_that_never_lets_its_collective_begin_is_told_to_the_others(tmp_path: Path) -> None:
    first, second = both(tmp_path, NEVER, "this wait can never end: everything that could end it waits, too")
    assert "rank 0 waits in all_reduce 2 of group default_pg, at " in first, first
    assert f"{line_of(tmp_path, 'reduce')} in <module>, for rank 1" in first, first
    for text in (first, second):
        assert "is closed, and nobody is left who could open it" in text, text
    assert "rank 1: thread MainThread waits for " in first and line_of(tmp_path, "wait") in first, first


BARRIER = """
group = dist.new_group([0, 1], group_desc="dp")
if rank == 0:
    dist.barrier(group)  # zero
else:
    dist.barrier()  # one
"""


def test_F39_a_barrier_is_a_wait_without_a_limit(tmp_path: Path) -> None:
    for text in both(tmp_path, BARRIER, "this wait can never end: each of these waits for the next"):
        assert "rank 0 waits in barrier 1 of group dp, at " in text, text
        assert "rank 1 waits in barrier 2 of group default_pg, at " in text, text


LATER = """
import subprocess, threading, time
group = dist.new_group([0, 1], group_desc="dp")

def spin():
    end = time.monotonic() + 3
    while time.monotonic() < end:
        pass

def thread():
    # The main thread waits for a collective that the other rank begins only after that of the thread.
    def later():
        time.sleep(3)
        with torch.cuda.stream(torch.cuda.Stream()):  # that of the main thread waits for the collective
            dist.all_reduce(x)
    one = threading.Thread(target=later)
    one.start()
    dist.all_reduce(y, group=group)
    torch.cuda.synchronize()
    one.join()

def taking_turns():
    for turn in range(5):
        time.sleep(0.7 * (turn % 2 == rank))  # the other one says meanwhile that it waits
        dist.all_reduce(x, group=group if turn % 2 else None)
        torch.cuda.synchronize()

ways = {
    "sleep": lambda: time.sleep(3),
    "spin": spin,
    "read": lambda: subprocess.run([sys.executable, "-c", "import time; time.sleep(3)"], stdout=subprocess.PIPE),
    "function": lambda: (own(torch.cuda.current_stream()).call(time.sleep, 3), torch.cuda.synchronize()),
}
if WAY == "turns":
    taking_turns()
elif WAY == "thread":
    if rank == 0:
        thread()
    else:
        dist.all_reduce(x)
        torch.cuda.synchronize()
        dist.all_reduce(y, group=group)
else:
    if rank == 0:
        ways[WAY]()
    dist.all_reduce(x)
torch.cuda.synchronize()
print(x[0].item() > 1)
dist.destroy_process_group()
"""


@pytest.mark.parametrize("way", ["sleep", "spin", "read", "function", "thread", "turns"])
def test_F39_a_rank_that_may_still_come_is_not_reported(tmp_path: Path, way: str) -> None:
    out = ranks.run(tmp_path, BEGIN + f"WAY = {way!r}\n" + LATER)
    assert out == ["True\n", "True\n"]
