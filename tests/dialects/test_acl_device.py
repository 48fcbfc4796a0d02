"""Start and end, devices, contexts."""

from __future__ import annotations

import pytest
from acl_help import ALLOCATE, LIMIT, Call, core, device_0, elsewhere, finish, ok, streams
from halstream import acl
from halstream.acl import rt

pytestmark = pytest.mark.dialect("acl")

__all__ = ["device_0"]


@pytest.mark.row(33)
def test_synchronize_device():
    seen: list[int] = []
    for stream in [0, *streams(2)]:
        for _ in range(20):
            core(stream).call(seen.append, stream)
    assert rt.synchronize_device() == 0
    assert len(seen) == 60
    assert rt.reset_device(0) == 0


@pytest.mark.row(34)
def test_synchronize_device_without_context():
    assert elsewhere(rt.synchronize_device) == 107002
    assert elsewhere(rt.synchronize_device_with_timeout, 50) == 107002


@pytest.mark.row(35)
def test_devices_that_do_not_exist():
    count = ok(rt.get_device_count())
    for wrong in (count, -1):
        assert rt.set_device(wrong) == 107001
        assert rt.get_device() == (0, 0)
        assert rt.reset_device(wrong) == 107001
        assert rt.create_context(wrong) == (0, 107001)
        assert rt.query_device_status(wrong)[1] == 107001
    assert rt.query_device_status(0) == (0, 0)


@pytest.mark.row(36)
def test_devices_are_counted():
    ok(rt.set_device(0))  # the second time: the fixture did it, too
    assert rt.reset_device(0) == 0
    finish(0)
    default = ok(rt.ctx_get_current_default_stream())
    assert rt.reset_device(0) == 0
    assert rt.get_device() == (0, 107002)
    assert rt.synchronize_stream(default) == 107017
    assert rt.reset_device(0) == 507007


@pytest.mark.row(37)
def test_reset_device_force():
    ok(rt.set_device(0))
    ok(rt.set_device(0))
    assert rt.reset_device_force(0) == 0
    assert rt.reset_device_force(0) == 507007
    assert rt.reset_device(0) == 507007
    assert rt.get_device() == (0, 107002)


@pytest.mark.row(38)
def test_a_new_thread_has_no_device():
    assert elsewhere(rt.get_device) == (0, 107002)
    assert elsewhere(rt.get_context) == (0, 107002)
    assert elsewhere(rt.create_stream) == (0, 107002)
    assert elsewhere(rt.create_event) == (0, 107002)
    assert elsewhere(rt.stream_query, 0) == (0xFFFF, 107002)


@pytest.mark.row(39)
def test_threads_share_the_primary_context():
    def default():
        ok(rt.set_device(0))
        return ok(rt.ctx_get_current_default_stream()), ok(rt.get_context())

    mine = ok(rt.ctx_get_current_default_stream()), ok(rt.get_context())
    assert mine[0] != 0
    assert elsewhere(default) == mine
    assert elsewhere(default) == mine
    assert rt.reset_device(0) == 0
    assert rt.reset_device(0) == 0


@pytest.mark.row(40)
def test_reset_device_waits_for_the_work(hold, settle):
    seen: list[str] = []
    (stream,) = streams(1)
    gate = hold(core(stream))
    core(stream).call(seen.append, "done")
    resetting = Call(rt.reset_device, 0)
    settle()
    assert not resetting.ended.is_set()
    gate.open()
    assert resetting.result() == 0
    assert seen == ["done"]


@pytest.mark.row(41)
def test_init_and_finalize():
    assert acl.init() == 0
    assert acl.init() == 100002
    assert acl.finalize() == 0
    assert acl.finalize() == 100037
    assert acl.init() == 0
    assert acl.finalize() == 0


@pytest.mark.row(42)
def test_finalize_reference():
    acl.init()
    acl.init()
    assert acl.finalize_reference() == (1, 0)
    assert acl.finalize_reference() == (0, 0)
    assert acl.finalize_reference() == (0, 100037)


@pytest.mark.row(43)
def test_init_with_a_file(tmp_path):
    assert acl.init(str(tmp_path / "none")) == 100003
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    assert acl.init(str(broken)) == 100006
    empty = tmp_path / "empty.json"
    empty.write_text("{}")
    assert acl.init(str(empty)) == 0
    assert acl.init() == 100002
    other = tmp_path / "other.json"
    other.write_text('{"err_msg_mode": "1"}')
    assert acl.init(str(other)) == 100000
    assert acl.finalize() == 0


def test_a_default_device_serves_threads_that_chose_none(tmp_path):
    config = tmp_path / "acl.json"
    config.write_text('{"defaultDevice": {"default_device": "1"}}')
    assert acl.init(str(config)) == 0
    assert elsewhere(rt.get_device) == (1, 0)
    assert rt.get_device() == (0, 0)
    acl.finalize()
    assert elsewhere(rt.get_device) == (0, 107002)


@pytest.mark.row(44)
def test_contexts_of_a_thread():
    primary = ok(rt.get_context())
    mine = ok(rt.create_context(1))
    assert mine not in (0, primary)
    assert rt.get_context() == (mine, 0)
    assert rt.get_device() == (1, 0)
    assert rt.destroy_context(mine) == 0
    assert rt.get_context() == (0, 107002)
    assert rt.set_context(primary) == 0
    assert rt.get_device() == (0, 0)
    assert rt.set_context(mine) == 107017


@pytest.mark.row(45)
def test_contexts_that_cannot_be_destroyed():
    assert rt.destroy_context(ok(rt.get_context())) == 107002
    assert rt.destroy_context(0) == 100000
    assert rt.set_context(0) == 100000
    (stream,) = streams(1)
    assert rt.set_context(stream) == 107017
    assert rt.destroy_context(2**64 - 1) == 107017
    finish(stream)


def test_a_stream_takes_work_only_in_its_context():
    primary = ok(rt.get_context())
    event = ok(rt.create_event_ex_with_flag(1))
    (stream,) = streams(1)
    other = ok(rt.create_context(0))
    assert rt.record_event(event, stream) == 107003
    assert rt.stream_wait_event(stream, event) == 107003
    assert rt.destroy_stream(stream) == 107003
    assert rt.synchronize_stream(stream) == 0
    assert rt.stream_query(stream) == (0, 0)
    ok(rt.set_context(primary))
    assert rt.record_event(event, stream) == 0
    assert elsewhere(rt.record_event, event, stream) == 107002
    assert rt.destroy_stream(stream) == 0
    assert rt.destroy_context(other) == 0


def test_a_device_is_synchronized_by_context(hold):
    (stream,) = streams(1)
    hold(core(stream))
    assert rt.synchronize_device_with_timeout(50) == 507046
    ok(rt.create_context(0))
    assert rt.synchronize_device_with_timeout(LIMIT) == 0


@pytest.mark.row(51)
def test_priorities():
    assert rt.device_get_stream_priority_range() == (7, 0, 0)
    for asked, got in ((0, 0), (3, 3), (7, 7), (99, 7)):
        stream = ok(rt.create_stream_with_config(asked, 0))
        assert rt.stream_get_priority(stream) == (got, 0)
    assert rt.stream_get_priority(ok(rt.create_stream())) == (0, 0)


@pytest.mark.row(52)
def test_the_default_stream_cannot_be_destroyed():
    default = ok(rt.ctx_get_current_default_stream())
    assert rt.destroy_stream(default) != 0
    assert rt.destroy_stream_force(default) != 0
    seen: list[int] = []
    core(default).call(seen.append, 1)
    finish(0)
    assert seen == [1]


def test_facts_of_the_process():
    assert rt.get_run_mode() == (1, 0)
    assert acl.get_version()[0] == 1
    assert acl.get_version()[3] == 0
    name = acl.get_soc_name()
    assert name
    assert not name.startswith(("Ascend910", "Ascend310"))
    assert rt.set_ts_device(0) == 0
    assert rt.set_ts_device(5) == 107000


@pytest.mark.needs("exact-memory")
def test_the_figures_follow_every_allocation():
    free, total = ok(rt.get_mem_info(acl.ACL_HBM_MEM))
    for allocate in ALLOCATE:
        pointer = ok(allocate())
        assert ok(rt.get_mem_info(acl.ACL_HBM_MEM)) == (free - (1 << 20), total)
        assert rt.free(pointer) == 0
        assert ok(rt.get_mem_info(acl.ACL_HBM_MEM)) == (free, total)


@pytest.mark.needs("abort")
def test_aborting_a_device_drops_the_work_of_all_its_streams(hold):
    first, second = streams(2)
    seen: list[str] = []
    for stream in (first, second):
        hold(core(stream))
        assert rt.launch_host_func(stream, seen.append, "dropped") == 0
    assert rt.stream_query(first) == (1, 0)
    assert rt.device_task_abort(0, 0) == 0
    assert rt.synchronize_stream_with_timeout(first, 10_000) == 0
    assert rt.synchronize_stream_with_timeout(second, 10_000) == 0
    assert seen == []
    assert rt.device_task_abort(9, 0) == 107001


def test_the_default_stream_has_no_order_with_others(hold):
    (stream,) = streams(1)
    seen: list[str] = []
    hold(core(0))
    core(stream).call(seen.append, "not held")
    finish(stream)
    assert seen == ["not held"]
