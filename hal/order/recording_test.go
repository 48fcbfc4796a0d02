package order

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

func TestV10_a_recording_gives_back_each_operation_as_it_was(t *testing.T) {
	k := newKit(t)
	k.c.Record()
	a, b, e := k.free(), k.free(), k.event(hal.Standard)
	many := make([]hal.Range, 300)
	for i := range many {
		many[i] = hal.Range{Start: uint64(i), Size: 1}
	}
	ops := []hal.Operation{
		{Kind: hal.OpCopy, Name: "upload", Stream: a, Reads: is(0, 10), Writes: is(20, 30), Site: 7},
		{Kind: hal.OpCall, Stream: b, Token: 1 << 40, Reads: is(0, 10), Internal: true},
		{Kind: hal.OpRecord, Stream: a, Event: e, Version: 1 << 41},
		{Kind: hal.OpWait, Stream: b, Event: e, Version: 1 << 41},
		{Kind: hal.OpWaitStream, Stream: b, Other: a},
		{Kind: hal.OpAllocate, Stream: a, Writes: is(0, 10), Cached: true, InOrder: true},
		{Kind: hal.OpSynchronizeStream, Stream: b, Host: true},
		{Kind: hal.OpFreeMemory, Stream: a, Host: true, Cached: true, Users: []*hal.Stream{a, b}, Writes: is(0, 10)},
		{Kind: hal.OpWriteValue, Stream: a, Value: &hal.ValueAccess{Addr: 64, Value: 3}, Writes: is(64, 72)},
		{Kind: hal.OpFreeMemory, Stream: a, Host: true, NoWait: true, Writes: is(0, 10)},
		{Kind: hal.OpLaunch, Stream: a, Reads: many},
		{Kind: hal.OpCall, Stream: a, Event: e, Other: b, Version: 1, Token: 2},
	}
	for _, kind := range hal.OperationKinds() {
		ops = append(ops, hal.Operation{Kind: kind, Stream: a, Site: 9})
	}
	r := k.c.recording
	for i := range ops {
		ops[i].ID, ops[i].Seq = uint32(i+1), uint64(1)<<50+uint64(i)
		ops[i].Thread = k.me
		r.handled(&ops[i])
		ops[i].Thread = nil
	}
	calls := k.c.calls()
	require.Len(t, calls, len(ops))
	for i, call := range calls {
		require.Equal(t, toHandle, call.what)
		require.Equal(t, k.me.ID, call.thread)
		require.True(t, reflect.DeepEqual(ops[i], call.op), "%s: %+v", ops[i].Kind, call.op)
	}
}

func TestV10_a_recorded_operation_takes_48_bytes_and_16_for_a_range(t *testing.T) {
	require.EqualValues(t, 48, unsafe.Sizeof(storedCall{}))
	k := newKit(t)
	op := hal.Operation{Kind: hal.OpCopy, Stream: k.free(), Thread: k.me, Reads: is(0, 10), Writes: is(20, 30)}
	r := &recording{}
	allocations := testing.AllocsPerRun(1, func() {
		for range 10_000 {
			r.handled(&op)
		}
	})
	require.Less(t, allocations, 1000.0, "calls and ranges are allocated in chunks") // other tests have threads that allocate, too
	require.Equal(t, 40_000, r.nRanges, "of 20,000 calls: nothing is lost at the ends of chunks")
}

func TestV10_a_run_with_too_many_ranges_is_not_recorded(t *testing.T) {
	k := newKit(t)
	k.c.Record()
	op := hal.Operation{Kind: hal.OpCopy, Stream: k.free(), Thread: k.me, Reads: make([]hal.Range, 200)}
	recorded := 0
	for range maxRanges/200 + 1 {
		k.c.recording.handled(&op)
		recorded = max(recorded, k.c.recording.n)
	}
	require.Greater(t, recorded, maxRanges/200/2)
	require.True(t, k.c.recording.full)
	require.Empty(t, k.c.calls())
	require.Empty(t, k.c.recording.ranges)
}

func TestV10_a_run_with_too_many_unusual_operations_is_not_recorded(t *testing.T) {
	k := newKit(t)
	k.c.Record()
	op := hal.Operation{Kind: hal.OpWriteValue, Value: &hal.ValueAccess{}, Stream: k.free(), Thread: k.me}
	for range maxWhole + 2 {
		k.c.recording.handled(&op)
	}
	require.Empty(t, k.c.calls())
	require.Empty(t, k.c.recording.whole)
}
