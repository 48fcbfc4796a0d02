package pybuild

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// must returns the value of a call that does not fail.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// TestACheckReportsAndIsAlone is about the one check of a process and the form
// of its reports, which _checks/finding.py reads.
func TestACheckReportsAndIsAlone(t *testing.T) {
	number, address, text := must[int64](t), must[uint64](t), must[string](t)
	require.Empty(t, text(CheckTake(1)), "none is on")
	require.Zero(t, number(CheckStop()))
	number(CheckStart(checkObserve))
	_, err := CheckStart(0)
	require.ErrorContains(t, err, "a check is on already")
	require.ErrorContains(t, err, "invalid_value")

	one, two := number(StreamNew(0, 0, nonBlocking, 0)), number(StreamNew(0, 0, nonBlocking, 0))
	block := address(MemAlloc(0, 256))
	number(StreamFill(one, block, 1, 1, 256))
	number(StreamFill(two, block+64, 2, 1, 64))
	require.Equal(t, int64(1), number(CheckFound()))
	lines := strings.Split(text(CheckTake(0)), recordSeparator)
	require.Len(t, lines, 1)
	fields := strings.Split(lines[0], separator)
	require.Len(t, fields, 47)
	require.Equal(t, "race", fields[0])
	require.Equal(t, "fill", fields[12])
	require.Equal(t, "fill", fields[24])
	require.Equal(t, "256", fields[22], "what the first one moves")
	require.Equal(t, "64", fields[34])
	require.Zero(t, number(CheckFound()), "it was taken")
	require.Contains(t, text(CheckMade()), "-1 ")
	require.NotEqual(t, "0", strings.Fields(text(CheckStats()))[0])

	number(CheckForget(block, 256))
	number(StreamFill(one, block, 1, 1, 256))
	require.Empty(t, text(CheckTake(1)), "it is other memory now")

	number(StreamSync(one, -1))
	number(StreamSync(two, -1))
	number(MemFree(block))
	number(CheckStop())
	other := address(MemAlloc(0, 256))
	number(StreamFill(one, other, 1, 1, 256))
	require.Empty(t, text(CheckTake(1)))
	require.True(t, strings.HasPrefix(text(CheckStats()), "0 "))
	number(StreamSync(one, -1))
	number(MemFree(other))
	number(Close(one))
	number(Close(two))
}

// TestACheckFollowsTheBackend is about a runtime that is changed meanwhile.
func TestACheckFollowsTheBackend(t *testing.T) {
	number, address, text := must[int64](t), must[uint64](t), must[string](t)
	race := func() {
		one, two := number(StreamNew(0, 0, nonBlocking, 0)), number(StreamNew(0, 0, nonBlocking, 0))
		block := address(MemAlloc(0, 256))
		number(StreamFill(one, block, 1, 1, 256))
		number(StreamFill(two, block, 1, 1, 256))
		number(StreamSync(one, -1))
		number(StreamSync(two, -1))
		number(MemFree(block))
		number(Close(one))
		number(Close(two))
	}
	number(CheckStart(0))
	race()
	number(UseBackend("host", "", 0))
	race()
	number(CheckFlags(checkObserve))
	require.Len(t, strings.Split(text(CheckTake(1)), recordSeparator), 2)
	number(CheckStop())
}
