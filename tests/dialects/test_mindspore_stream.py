"""mindspore: making streams, their numbers, equality, texts and what they refuse."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import weakref
from typing import Any

import halstream as hs
import pytest
from halstream.mindspore import hal, runtime

pytestmark = [pytest.mark.dialect("mindspore"), pytest.mark.usefixtures("backend")]


@pytest.mark.row(19)
def test_a_thousand_streams_can_be_made() -> None:
    kept = [hal.Stream() for _ in range(1000)]
    assert len({s.id for s in kept}) == 1000
    assert all(s.query() is True for s in kept)


@pytest.mark.row(23)
@pytest.mark.parametrize(
    ("value", "got"),
    [(True, "bool"), (1.0, "float"), ("a", "str"), (None, "NoneType"), (object(), "object")],
)
def test_priority_must_be_an_int(value: Any, got: str) -> None:
    with pytest.raises(TypeError) as info:
        hal.Stream(value)
    assert str(info.value) == f"For 'Stream', the type of 'priority' must be 'int', but got '{got}'."


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**40])
def test_priority_beyond_32_bits_is_a_type_error(value: int) -> None:
    with pytest.raises(TypeError, match="incompatible constructor arguments"):
        hal.Stream(value)


@pytest.mark.parametrize("value", [-(2**31), -5, -1, 0, 1, 2**31 - 1])
def test_priority_is_clamped_not_refused(value: int) -> None:
    least, greatest = hs.Device(0).priority_range
    assert hal.Stream(value).priority == min(least, max(greatest, value))


@pytest.mark.row(24)
def test_a_second_positional_argument_is_refused() -> None:
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 3"):
        hal.Stream(0, 1)  # type: ignore[call-arg]


@pytest.mark.row(25)
def test_unknown_keywords_are_ignored() -> None:
    s = hal.Stream(device=0, foo=1)
    assert s.id > 0
    assert s.device_id == 0


def test_streams_are_non_blocking() -> None:
    assert hal.Stream().non_blocking


@pytest.mark.row(26)
def test_the_stream_keyword_names_the_same_stream_again() -> None:
    s = hal.Stream()
    before = hal.Stream().id
    again = hal.Stream(stream=s)
    assert again == s
    assert again is not s
    assert again.id == s.id
    assert hal.Stream().id == before + 1, "naming a stream again made one"


def test_the_stream_keyword_takes_a_stream_of_another_class() -> None:
    core = hs.Stream()
    assert hal.Stream(stream=core).handle == core.handle
    assert hal.Stream(stream=runtime.Stream()).id > 0


def test_a_second_name_keeps_the_stream_alive() -> None:
    s = hal.Stream()
    handle = s.handle
    again = hal.Stream(stream=s)
    del s
    gc.collect()
    hal.Stream()
    again.nop()
    again.synchronize(timeout=10)
    assert again.handle == handle


@pytest.mark.row(27)
def test_stream_none_makes_a_stream() -> None:
    s = hal.Stream()
    assert hal.Stream(stream=None) != s


@pytest.mark.row(28)
@pytest.mark.parametrize("value", ["x", 1.5, b"", [], hal.Event])
def test_the_stream_keyword_refuses_other_objects(value: Any) -> None:
    with pytest.raises(TypeError, match="incompatible constructor arguments"):
        hal.Stream(stream=value)


def test_an_int_as_stream_is_a_priority() -> None:
    s = hal.Stream()
    other = hal.Stream(stream=-1)
    assert other != s
    assert other.priority == -1


def test_priority_is_checked_also_where_it_is_not_used() -> None:
    s = hal.Stream()
    with pytest.raises(TypeError, match="'priority' must be 'int', but got 'NoneType'"):
        hal.Stream(None, stream=s)  # type: ignore[arg-type]


@pytest.mark.row(29)
def test_stream_id_attaches_to_a_live_stream() -> None:
    s = hal.Stream()
    assert hal.Stream(stream_id=s.id) == s
    assert hal.Stream(stream_id=0) == hal.default_stream()


def test_an_attached_stream_is_kept_alive_by_its_new_object() -> None:
    s = hal.Stream()
    attached = hal.Stream(stream_id=s.id)
    del s
    gc.collect()
    hal.Stream()
    attached.nop()
    attached.synchronize(timeout=10)


@pytest.mark.row(30)
def test_stream_id_errors() -> None:
    with pytest.raises(ValueError, match=r"^stream_id:1000000 is not exist$"):
        hal.Stream(stream_id=10**6)
    with pytest.raises(RuntimeError, match=re.escape("The int value(-1) is less than 0.")):
        hal.Stream(stream_id=-1)
    for value, got in ((None, "NoneType"), ("1", "str"), (True, "bool")):
        with pytest.raises(TypeError) as info:
            hal.Stream(stream_id=value)
        text = f"For 'Stream', the type of 'stream_id' must be 'int', but got '{got}'."
        assert str(info.value) == text


@pytest.mark.row(31)
def test_stream_wins_over_stream_id() -> None:
    s = hal.Stream()
    assert hal.Stream(stream=s, stream_id=10**6) == s


@pytest.mark.row(32)
def test_ids_grow_and_are_never_used_again() -> None:
    a, b = hal.Stream(), hal.Stream()
    assert a != b
    assert 0 < a.id < b.id
    last = b.id
    del b
    gc.collect()
    assert [hal.Stream().id for _ in range(3)] == [last + 1, last + 2, last + 3]


@pytest.mark.row(41)
def test_comparing_with_anything_else_raises() -> None:
    s = hal.Stream()
    text = "For '__eq__', the argument 'other' should be Stream, but got <class 'int'>."
    with pytest.raises(TypeError, match=re.escape(text)):
        assert s == 3
    with pytest.raises(TypeError, match=re.escape(text)):
        assert s != 3
    with pytest.raises(TypeError, match=re.escape(text)):
        assert 3 == s  # noqa: SIM300
    with pytest.raises(TypeError, match="<class 'NoneType'>"):
        assert s == None  # noqa: E711
    with pytest.raises(TypeError, match="<class 'NoneType'>"):
        assert None == s  # noqa: E711, SIM300
    with pytest.raises(TypeError):
        assert s in [1, s]


@pytest.mark.row(42)
def test_identity_is_compared_first_and_equal_streams_are_one_key() -> None:
    s = hal.Stream()
    assert s in [s, 1]
    assert {s: 1}[hal.Stream(stream=s)] == 1
    assert len({s, hal.Stream(stream=s), hal.Stream()}) == 2


@pytest.mark.row(43)
def test_objects_of_one_stream_have_one_hash() -> None:
    for s in (hal.Stream(), hal.default_stream()):
        assert hash(s) == hash(hal.Stream(stream=s)) == hash(hs.Stream.from_handle(s.stream_ptr()))


@pytest.mark.row(44)
def test_texts() -> None:
    s = hal.Stream()
    assert repr(s) == f"Stream(device_name={s.device_name}, device_id:0, stream id:{s.id})"
    assert re.match(r"^Stream\(device_name=\w+, device_id:\d+, stream id:\d+\)$", repr(s))
    assert str(s) == repr(s)


def test_the_text_is_empty_until_the_stream_is_made() -> None:
    seen = []

    class Watching(hal.Stream):
        def _create(self, *args: Any, **kwargs: Any) -> None:
            seen.append((self.init_finished, repr(self)))
            super()._create(*args, **kwargs)

    s = Watching()
    assert seen == [(False, "")]
    assert s.init_finished is True
    assert hal.current_stream().init_finished is True


@pytest.mark.row(45)
def test_properties_are_read_only_and_attributes_can_be_added() -> None:
    s = hal.Stream()
    for name in ("id", "device_id", "device_name"):
        with pytest.raises(AttributeError):
            setattr(s, name, 3)
    with pytest.raises(AttributeError):
        del s.id
    s.foo = 1  # type: ignore[attr-defined]
    assert s.foo == 1  # type: ignore[attr-defined]
    assert bool(s) is True


@pytest.mark.row(46)
@pytest.mark.parametrize("cls", [hal.Stream, hal.Event])
def test_neither_copied_nor_pickled_but_weakly_referenced(cls: type) -> None:
    made = cls()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError) as info:
            attempt(made)
        assert str(info.value) == f"cannot pickle '{cls.__name__}' object"
    reference = weakref.ref(made)
    assert reference() is made
    del made, info  # the traceback holds it, too
    gc.collect()
    assert reference() is None


@pytest.mark.row(47)
def test_the_default_stream_is_number_0() -> None:
    a, b = hal.default_stream(), hal.default_stream()
    assert a.id == 0
    assert a == b
    assert a is not b
    assert type(a) is hal.Stream


def test_streams_have_no_order() -> None:
    with pytest.raises(TypeError, match="not supported between instances"):
        assert hal.Stream() < hal.Stream()  # type: ignore[operator]


@pytest.mark.row(100)
def test_device_stream_is_a_method_that_gives_the_handle() -> None:
    s = hal.Stream()
    assert s.device_stream() == s.handle >= 16
    assert s.stream_ptr() == s.handle
    assert hal.default_stream().device_stream() == 0
    assert s.stream_id() == s.id


def test_a_subclass_passes_every_check() -> None:
    class Mine(hal.Stream):
        def __init__(self, device: Any = None) -> None:
            super().__init__(device=device)

    s = Mine()
    assert s == hal.Stream(stream=s)
    with hal.StreamCtx(s):
        assert hal.current_stream() == s
    assert isinstance(s.record_event(), hal.Event)
