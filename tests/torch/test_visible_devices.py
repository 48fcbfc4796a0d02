"""CUDA_VISIBLE_DEVICES under the redirection: read as CUDA's driver reads it, on the devices that the host has."""

from __future__ import annotations

from typing import Any

import pytest

COUNTS = """
import halstream.torch.cuda_on_host
import torch

print(torch.cuda.is_available(), torch.cuda.device_count(), torch.accelerator.device_count())
"""


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("0", 1),
        ("1", 1),
        ("0,1", 2),
        ("1, 0", 2),
        ("", 0),
        ("-1", 0),
        ("0,-1,1", 1),  # a wrong entry ends the list
        ("0,2,1", 1),  # so does one that does not exist
        ("0,0", 0),  # named twice: none at all
        ("NoDevFiles", 0),
    ],
)
def test_F15_the_devices_are_those_that_the_variable_leaves(program: Any, value: str, count: int) -> None:
    done = program(COUNTS, env={"CUDA_VISIBLE_DEVICES": value})
    assert done.stdout == f"{count > 0} {count} {count}\n", done.stderr


def test_F15_without_a_visible_device_a_program_goes_on_with_the_cpu(program: Any) -> None:
    done = program(
        """
        import halstream.torch.cuda_on_host
        import torch
        device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(3)
        print((torch.ones(3, device=device, requires_grad=True) * 2).sum().item(), device)
        for use in (lambda: torch.ones(2, device="cuda"), torch.cuda.init, torch.cuda.current_stream):
            try:
                use()
            except RuntimeError as exc:
                print(exc)
        """,
        env={"CUDA_VISIBLE_DEVICES": "-1"},
    )
    assert done.stdout == "6.0 cpu\n" + 3 * "No CUDA GPUs are available\n", done.stderr


def test_F15_the_variable_is_read_until_the_first_use(program: Any) -> None:
    done = program(
        """
        import os
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        import halstream.torch.cuda_on_host
        import torch
        print(torch.cuda.device_count())
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"
        print(torch.cuda.device_count())
        torch.ones(1, device="cuda")
        os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
        print(torch.cuda.device_count())
        try:
            torch.cuda.set_device(1)
        except torch.AcceleratorError as exc:
            print(str(exc).splitlines()[0])
        """
    )
    assert done.stdout == "0\n1\n1\nCUDA error: invalid device ordinal (1 of 1 devices)\n", done.stderr


def test_F15_a_device_is_named_by_its_uuid_as_well(program: Any) -> None:
    source = """
    import halstream.torch.cuda_on_host
    import torch
    print(*(torch.cuda.get_device_properties(i).uuid for i in range(torch.cuda.device_count())))
    print(torch.ones(2, device="cuda").sum().item())
    """
    first, second = program(source).stdout.split()[:2]
    assert first != second
    for chosen, seen in (
        (f"GPU-{second}", [second]),
        (f"GPU-{second[:8]},GPU-{first}", [second, first]),
        ("1", [second]),
    ):
        done = program(source, env={"CUDA_VISIBLE_DEVICES": chosen})
        assert done.stdout.split() == [*seen, "2.0"], done.stderr
    assert program(COUNTS, env={"CUDA_VISIBLE_DEVICES": "GPU-"}).stdout == "False 0 0\n"
