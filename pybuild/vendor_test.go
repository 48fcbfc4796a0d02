package pybuild

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/bindings/python"
	"halstream/hal"
)

// TestAnIdIsGivenUpOnce is about two threads that close one object: the second
// comes while the first lets it call.
func TestAnIdIsGivenUpOnce(t *testing.T) {
	number := must[int64](t)
	id := number(QueueNew())
	remove(id)
	remove(id)
	next, other := number(QueueNew()), number(QueueNew())
	require.NotEqual(t, next, other)
	require.NotEqual(t, id, next, "no id is given twice")
	number(Close(next))
	number(Close(other))
}

func TestAFailedChangeOfTheBackendChangesNothing(t *testing.T) {
	number := must[int64](t)
	s := number(StreamNew(0, 0, 0, 0))
	before, ids := rt, python.Current().Legacy
	_, err := UseBackend("host", "[]", 0)
	require.ErrorContains(t, err, "alive")
	number(Close(s))
	_, err = UseBackend("no such thing", "[]", 0)
	require.ErrorContains(t, err, "invalid_value")
	require.Same(t, before, rt)
	require.Equal(t, ids, python.Current().Legacy)
	require.Nil(t, opening)
	number(UseBackend("host", "[]", 0))
	require.NotSame(t, before, rt)
	require.Nil(t, find(ids[0]), "the ids of the runtime before are no streams any more")
}

func TestWhatTheHostBackendHasNot(t *testing.T) {
	number, text := must[int64](t), must[string](t)
	s := number(StreamNew(0, 0, 0, 0))
	defer func() { number(Close(s)) }()
	for _, f := range []func() error{
		func() error { _, err := DeviceFact(0, "uuid"); return err },
		func() error { _, err := StreamExternal(0, 0x1234); return err },
		func() error { _, err := PeerEnable(0, 1); return err },
	} {
		require.ErrorContains(t, f(), "not_supported")
	}
	for _, image := range []string{"hex:7", "text", "hex:7f", "hex:7f454c46"} {
		_, err := ModuleLoad(0, image)
		require.ErrorContains(t, err, "invalid_value", image)
	}
	_, err := ModuleLoad(0, "hex:7")
	require.ErrorContains(t, err, "invalid_value")
	_, err = ModuleFunction(s, "f")
	require.ErrorContains(t, err, "not the handle of a live module")
	_, err = FunctionThreads(s)
	require.ErrorContains(t, err, "not the handle of a live kernel")
	require.Equal(t, python.Current().Legacy[0], number(StreamExternal(0, 0)))
	require.Equal(t, python.Current().Legacy[0], number(StreamExternal(0, 1)))
	require.Zero(t, number(StreamForeign(s)))
	require.Zero(t, number(PeerCanAccess(0, 1)))
	require.EqualValues(t, 1, number(PeerCanAccess(0, 0)))
	require.EqualValues(t, hal.GreatestPriority, number(DeviceGreatestPriority(0)))
	require.Equal(t, s, number(StreamHandle(s)), "its streams have no handles of a library's")
	_ = text(BackendPassed())
}

func TestAModeOfAnArgumentIsOneOfItsLetters(t *testing.T) {
	require.NoError(t, checkModes("-rwbRWB"))
	require.ErrorIs(t, checkModes("-x-"), hal.ErrInvalidValue)
}

func TestTheEnvironmentIsReadAsItIsNow(t *testing.T) {
	const name = "HALSTREAM_TEST_VARIABLE"
	t.Setenv(name, "one")
	require.NoError(t, refreshEnviron())
	require.Equal(t, "one", os.Getenv(name))
}
