package pybuild

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIDsAreNeverGivenTwice(t *testing.T) {
	seen := map[int64]bool{}
	for range 1000 {
		a, b := insert("a"), insert("b")
		require.False(t, seen[a] || seen[b])
		seen[a], seen[b] = true, true
		require.Zero(t, a%16)
		require.Equal(t, "a", find(a))
		remove(a)
		require.Nil(t, find(a))
		remove(b)
	}
	for _, bad := range []int64{-1, 0, 1, 2, 17, 1 << 62, -1 << 63} {
		require.Nil(t, find(bad), "%d", bad)
	}
}

func TestErrorsHaveTheFormThatPythonTakesApart(t *testing.T) {
	id := insert("x")
	remove(id)
	closed := unknown(id, "query", "stream")
	require.Len(t, strings.Split(closed.Error(), separator), 6)
	require.Contains(t, closed.Error(), separator+"closed"+separator)
	require.Contains(t, unknown(12345, "query", "stream").Error(), "invalid_handle")
	require.Same(t, closed, raise(closed))
}

func TestAStreamThroughTheFlatFunctions(t *testing.T) {
	s, err := StreamNew(0, -99, nonBlocking, 0)
	require.NoError(t, err)
	e, err := EventNew(-1, timing)
	require.NoError(t, err)
	_, err = StreamNop(s)
	require.NoError(t, err)
	_, err = StreamRecord(s, e)
	require.NoError(t, err)
	done, err := StreamSync(s, 10_000_000_000)
	require.NoError(t, err)
	require.EqualValues(t, 1, done)
	priority, err := StreamPriority(s)
	require.NoError(t, err)
	require.EqualValues(t, -7, priority)
	_, err = StreamRecord(e, s)
	require.ErrorContains(t, err, "not the handle of a live stream")
	for _, id := range []int64{s, e} {
		_, err = Close(id)
		require.NoError(t, err)
	}
	_, err = StreamQuery(s)
	require.ErrorContains(t, err, "closed")
}

func TestPanicsBecomeErrors(t *testing.T) {
	f := func() (err error) {
		defer guard(&err)
		panic("oops")
	}
	require.ErrorContains(t, f(), "oops")
}
