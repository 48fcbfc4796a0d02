package order

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"halstream/hal"
)

// A function on a stream takes a lock that the program's thread releases after it was enqueued.
func TestV10_a_wait_of_the_host_that_holds_a_lock_of_a_function_is_refused(t *testing.T) {
	k := newKit(t)
	k.c.Record()
	s := k.free()
	const lock, token = 7, 5
	k.do(hal.Operation{Kind: hal.OpCall, Stream: s, Token: token})
	k.c.Order(k.me, Release, lock, 0)
	k.c.Order(hal.NewThread(), Acquire, lock, token)
	calls := k.c.calls()
	wait := hal.Operation{Kind: hal.OpSynchronizeStream, Host: true, Stream: s}
	require.True(t, canEnd(calls, nil))
	require.False(t, canEnd(calls, []addedCall{{at: 1, thread: k.me.ID, op: wait}}))
	require.True(t, canEnd(calls, []addedCall{{at: 2, thread: k.me.ID, op: wait}}))
	require.True(t, canEnd(calls, []addedCall{{at: 1, thread: k.me.ID + 100, op: wait}}), "another thread may wait")
}

func TestV10_a_recorded_run_has_the_same_findings_when_it_is_checked_again(t *testing.T) {
	k := newKit(t)
	kinds := slices.Concat(enqueued, hostCalls, []int{stepFutureWait, stepFutureRecord, stepClose, stepObserved})
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		program := rapid.SliceOfN(steps(kinds, 3), 1, 60).Draw(t, "program")
		p := k.play(program, 3)
		p.c.Finish()
		want := map[pair]side{}
		for _, r := range p.c.Take() {
			want[keyOf(&r)] = sideOf(&r.First)
		}
		require.Equal(t, want, replayed(p.c.calls(), nil))
		found += len(want)
	})
	require.NotZero(t, found)
}
