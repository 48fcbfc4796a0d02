"""A rank of torch.distributed that ends: what the other one is told, and that it is handed no value."""

from __future__ import annotations

from pathlib import Path

import pytest
import ranks

BEGIN = """
import signal
start("nccl", seconds=60)
x, y = full(1.0), full(-1.0)
dist.all_reduce(x)
torch.cuda.synchronize()

def raises(call):
    try:
        value = call()
    except dist.DistBackendError as error:
        return str(error)
    raise SystemExit(f"{call} gave {value!r}")

def ends_here():
    if HOW == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(0)
"""

ASKED = """
if rank == 0:
    ends_here()
if WHAT == "recv":
    work = dist.irecv(y, 0)
else:
    work = dist.all_reduce(y, async_op=True)

def first():
    work.wait()
    return y.sum().item()

text = raises(first)
number = 1 if WHAT == "recv" else 2  # messages have numbers of their own
for part in (f"[Rank 1] Collective WorkNCCL(SeqNum={number}, OpType={TYPE}, ", "raised the following async exception: "
             "NCCL error: remote process exited or there was a network error", "ncclRemoteError: ", "program.py:"):
    assert part in text, (part, text)
for later in (work.wait, y.tolist, torch.cuda.synchronize, lambda: full(3.0).sum().item(), lambda: dist.all_reduce(y),
              torch.cuda.current_stream().query, dist.barrier):
    assert f"OpType={TYPE}" in raises(later)
assert work.is_completed() and not work.is_success()
del work, x
y = torch.ones(2, device="cuda:0")
assert y.sum().item() == 2  # the other device works
assert hs.testing.recover() == []
assert full(3.0).sum().item() == 12
text = raises(lambda: dist.all_reduce(full(1.0)))
assert "NCCL communicator was aborted on rank 1. Original reason for failure was: [Rank 1] Collective" in text, text
dist.destroy_process_group()
print("over")
"""

DESTROYED = """
if rank == 0:
    ends_here()
dist.all_reduce(y)
dist.destroy_process_group()
raises(y.sum)
print("over")
"""

TRAINED = """
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2).cuda(), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    if rank == 0 and step == 3:
        ends_here()
    optimizer.zero_grad()
    loss = model(torch.ones(3, 4, device=device)).square().mean()
    loss.backward()
    optimizer.step()
    print(step, loss.item() + next(model.parameters()).sum().item() * 0)
"""

NUMBER = """
if rank == 0:
    with open("pid", "w") as file:
        print(os.getpid(), file=file)
"""

NEVER = """
if rank == 0:
    ends_here()
dist.all_reduce(y)
import select
with open("pid") as file:
    number = int(file.read())
try:
    peer = os.pidfd_open(number)
except ProcessLookupError:  # the peer has ended, and the test knows
    pass
else:
    assert select.select([peer], [], [], 60)[0]  # it has, however long that took
"""

GLOO = """
start("gloo", seconds=60)
y = full(-1.0)
dist.all_reduce(full(1.0))
if rank == 0:
    sys.exit(0)
try:
    dist.all_reduce(y)
except RuntimeError as error:
    assert "onnection" in str(error), error
    assert full(3.0).sum().item() == 12  # as with torch's gloo, the device works
    print("over")
"""


@pytest.mark.parametrize("how", ["ended", "killed"])
@pytest.mark.parametrize(("what", "kind"), [("recv", "RECV"), ("all_reduce", "ALLREDUCE")])
def test_F37_each_later_call_raises_that_the_peer_has_ended(tmp_path: Path, what: str, kind: str, how: str) -> None:
    source = f"HOW, WHAT, TYPE = {how!r}, {what!r}, {kind!r}\n" + BEGIN + ASKED
    first, second = ranks.endings(tmp_path, source)
    assert first.returncode == (-9 if how == "killed" else 0), first.stderr
    assert (second.returncode, second.stdout) == (0, "over\n"), second.stderr


def test_F37_a_group_whose_peer_has_ended_can_be_destroyed(tmp_path: Path) -> None:
    first, second = ranks.endings(tmp_path, 'HOW = "killed"\n' + BEGIN + DESTROYED)
    assert first.returncode == -9, first.stderr
    assert (second.returncode, second.stdout) == (0, "over\n"), second.stderr


@pytest.mark.parametrize("how", ["ended", "killed"])
def test_F37_training_ends_with_the_error_in_the_step_whose_peer_is_missing(tmp_path: Path, how: str) -> None:
    first, second = ranks.endings(tmp_path, f"HOW = {how!r}\n" + BEGIN + TRAINED)
    steps = [line.split()[0] for line in second.stdout.splitlines()]
    assert steps == ["0", "1", "2"] and second.returncode == 1, second.stdout + second.stderr
    assert "DistBackendError" in second.stderr and "ncclRemoteError" in second.stderr, second.stderr
    assert first.returncode == (-9 if how == "killed" else 0), first.stderr


def test_F37_a_rank_that_never_looked_says_so_and_ends_with_1(tmp_path: Path) -> None:
    first, second = ranks.endings(tmp_path, 'HOW = "ended"\n' + NUMBER + BEGIN + NEVER)
    assert first.returncode == 0, first.stderr
    assert second.returncode == 1, second.stderr
    line = "halstream: the program ended without a look at the error of cuda:1: nccl:all_reduce: [Rank 1]"
    assert line in second.stderr, second.stderr


def test_F37_a_group_of_gloo_raises_in_its_call(tmp_path: Path) -> None:
    first, second = ranks.endings(tmp_path, GLOO)
    assert first.returncode == 0, first.stderr
    assert (second.returncode, second.stdout) == (0, "over\n"), second.stderr
