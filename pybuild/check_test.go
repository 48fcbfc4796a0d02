package pybuild

import (
	"encoding/json"
	"halstream/bindings"
	"halstream/bindings/records"
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

// decoded returns a record, or a list of records, that a call returned as text.
func decoded[T any](t *testing.T, text string) (value T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &value))
	return value
}

// findings takes what the check has found.
func findings(t *testing.T, finish int64) []findingRecord {
	t.Helper()
	return decoded[[]findingRecord](t, must[string](t)(CheckTake(finish)))
}

// TestACheckReportsAndIsAlone is about the one check of a process and the records
// of its reports, which _checks/finding.py reads.
func TestACheckReportsAndIsAlone(t *testing.T) {
	number, address, text := must[int64](t), must[uint64](t), must[string](t)
	require.Empty(t, findings(t, 1), "none is on")
	require.Zero(t, number(CheckStop()))
	number(CheckStart(bindings.CheckObserve))
	_, err := CheckStart(0)
	require.ErrorContains(t, err, "a check is on already")
	require.ErrorContains(t, err, "invalid_value")

	one, two := number(StreamNew(0, 0, bindings.StreamNonBlocking, 0)), number(StreamNew(0, 0, bindings.StreamNonBlocking, 0))
	block := address(MemAlloc(0, 256))
	number(StreamFill(one, block, 1, 1, 256))
	number(StreamFill(two, block+64, 2, 1, 64))
	require.Equal(t, int64(1), number(CheckFound()))
	found := findings(t, 0)
	require.Len(t, found, 1)
	require.Equal(t, "race", found[0].Category)
	require.Equal(t, records.Range{Start: block + 64, Size: 64}, found[0].Range)
	require.Equal(t, "fill", found[0].First.Kind)
	require.Equal(t, "fill", found[0].Second.Kind)
	require.EqualValues(t, 256, found[0].First.Size, "what the first one moves")
	require.EqualValues(t, 64, found[0].Second.Size)
	require.Nil(t, found[0].Wait)
	require.Zero(t, number(CheckFound()), "it was taken")
	kinds := map[string]bool{}
	for _, m := range decoded[[]madeRecord](t, text(CheckMade())) {
		kinds[m.Kind] = true
	}
	require.Equal(t, map[string]bool{"stream": true, "memory": true}, kinds)
	require.NotZero(t, decoded[checkRecord](t, text(CheckStats())).Operations)

	number(CheckForget(block, 256))
	number(StreamFill(one, block, 1, 1, 256))
	require.Empty(t, findings(t, 1), "it is other memory now")

	number(StreamSync(one, -1))
	number(StreamSync(two, -1))
	number(MemFree(block))
	number(CheckStop())
	other := address(MemAlloc(0, 256))
	number(StreamFill(one, other, 1, 1, 256))
	require.Empty(t, findings(t, 1))
	require.Zero(t, decoded[checkRecord](t, text(CheckStats())))
	number(StreamSync(one, -1))
	number(MemFree(other))
	number(Close(one))
	number(Close(two))
}

// TestACheckFollowsTheBackend is about a runtime that is changed meanwhile.
func TestACheckFollowsTheBackend(t *testing.T) {
	number, address := must[int64](t), must[uint64](t)
	race := func() {
		one, two := number(StreamNew(0, 0, bindings.StreamNonBlocking, 0)), number(StreamNew(0, 0, bindings.StreamNonBlocking, 0))
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
	number(UseBackend("host", "[]", 0))
	race()
	number(CheckFlags(bindings.CheckObserve))
	require.Len(t, findings(t, 1), 2)
	number(CheckStop())
}
