"""What a launch can ask for besides its size, and what a program says about its parameters."""

from __future__ import annotations

from cuda_help import Program

KERNEL = """
    import halstream as hs, look_alike
    kernel = hs.Kernel(look_alike.PTX, name="fill_u32", signature="out uint32 *x, uint32 v, uint32 n")
    s, x = hs.Stream(), hs.empty(4, "uint32")
    driver = look_alike.Driver()
"""


def test_K1_a_launch_has_the_shared_memory_and_the_clusters_it_asks_for(run_program: Program) -> None:
    run_program(
        KERNEL
        + """
    s.launch(kernel, 4, 1, x, 7, 4, shared=227 << 10, cluster=(2, 1, 1))
    assert x.numpy(s).tolist() == [7] * 4
    assert driver.count("launched.shared") == 227 << 10 and driver.count("launched.cluster") == 2
    s.launch(kernel, 4, 1, x, 8, 4)
    assert x.numpy(s).tolist() == [8] * 4
    assert driver.count("launched.shared") == 0 == driver.count("launched.cluster")
    assert driver.count("cuFuncSetAttribute") == 1  # at the load, not at launches
    """
    )


def test_K2_a_cooperative_launch_of_more_blocks_than_fit_is_refused(run_program: Program) -> None:
    run_program(
        KERNEL
        + """
    s.launch(kernel, 16, 1024, x, 9, 4, cooperative=True)
    assert x.numpy(s).tolist() == [9] * 4
    exc = look_alike.error(s.launch, kernel, 17, 1024, x, 9, 4, cooperative=True)
    assert exc.code == 720, exc
    s.launch(kernel, 17, 1024, x, 10, 4)
    assert x.numpy(s).tolist() == [10] * 4
    """
    )


def test_K2_shared_memory_that_a_device_does_not_have_is_refused(run_program: Program) -> None:
    """Without the attribute, in a driver before CUDA 9, a block has 48 KiB."""
    run_program(
        """
    import os
    import halstream as hs, look_alike
    path = look_alike.without(os.environ["HALSTREAM_CUDA_LIBRARY"], "cuFuncSetAttribute", "cuGetProcAddress_v2",
                              to="without.so")
    os.environ["HALSTREAM_CUDA_LIBRARY"] = os.path.abspath(path)
    kernel = hs.Kernel(look_alike.PTX, name="fill_u32", signature="out uint32 *x, uint32 v, uint32 n")
    s, x = hs.Stream(), hs.empty(4, "uint32")
    s.launch(kernel, 1, 1, x, 7, 4, shared=48 << 10)
    exc = look_alike.error(s.launch, kernel, 1, 1, x, 8, 4, shared=(48 << 10) + 1)
    assert type(exc) is hs.KernelArgumentError and "allows a block of this kernel 49152" in str(exc), exc
    assert x.numpy(s).tolist() == [7] * 4
    """
    )


def test_K2_clusters_need_a_driver_and_a_device_that_have_them(run_program: Program) -> None:
    run_program(
        KERNEL
        + """
    exc = look_alike.error(s.launch, kernel, 4, 1, x, 7, 4, cluster=2)
    assert type(exc) is hs.NotSupportedError, exc
    s.launch(kernel, 4, 1, x, 7, 4)
    assert x.numpy(s).tolist() == [7] * 4
    """,
        FAKECUDA_VERSION="11020",
    )


def test_K2_a_signature_that_is_not_the_programs_is_refused_before_a_launch(run_program: Program) -> None:
    run_program(
        KERNEL
        + """
    for signature, declared in (
        ("out uint32 *x, uint32 v", "2 parameters of 8, 4 bytes"),
        ("out uint32 *x, uint32 v, uint64 n", "3 parameters of 8, 4, 8 bytes"),
        ("", "0 parameters"),
    ):
        wrong = hs.Kernel(look_alike.PTX, name="fill_u32", signature=signature)
        for refused in (lambda: wrong.load(), lambda: s.launch(wrong, 1, 1, *[x, 1, 4][: len(wrong.parameters)])):
            exc = look_alike.error(refused)
            assert type(exc) is hs.KernelArgumentError, exc
            assert declared in str(exc) and "its program has 3 parameters of 8, 4, 4 bytes" in str(exc), exc
    assert driver.count("cuLaunchKernelEx") == 0
    """
    )
    # A driver before CUDA 12.4 does not say what the parameters are.
    run_program(
        KERNEL
        + """
    hs.Kernel(look_alike.PTX, name="fill_u32", signature="out uint32 *x, uint32 v").load()
    """,
        FAKECUDA_VERSION="12030",
    )


def test_K1_kernels_use_memory_of_a_device_to_which_access_was_enabled(run_program: Program) -> None:
    """The memory is a pool's, which has rights of its own."""
    run_program(
        """
    import halstream as hs, look_alike
    from halstream._core import _interop
    near = hs.empty(4, "uint32", device=0)
    _interop.enable_peer(1, 0)
    raw = hs.Kernel(look_alike.PTX, name="fill_u32", signature="uint64 x, uint32 v, uint32 n")
    s = hs.Stream(1)
    s.launch(raw, 1, 1, near.ptr, 7, 4)
    s.synchronize()
    assert near.numpy().tolist() == [7] * 4
    """
    )
