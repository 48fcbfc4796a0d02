package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// TestV26_work_counts_as_unwaited_until_the_host_has_waited_for_all_of_it has two streams.
func TestV26_work_counts_as_unwaited_until_the_host_has_waited_for_all_of_it(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	require.False(t, k.c.Unwaited(k.me))
	k.write(a, is(0, 8))
	k.read(b, is(8, 16))
	require.True(t, k.c.Unwaited(k.me))
	k.sync(a)
	require.True(t, k.c.Unwaited(k.me))
	k.sync(b)
	require.False(t, k.c.Unwaited(k.me))
	k.hostWrite(is(0, 16))
	require.False(t, k.c.Unwaited(k.me))
	k.do(hal.Operation{Kind: hal.OpFree, Stream: a, Writes: is(0, 8)})
	require.False(t, k.c.Unwaited(k.me))
	k.none()
}

// TestV26_work_that_another_thread_has_waited_for_is_unwaited waits on a second thread.
func TestV26_work_that_another_thread_has_waited_for_is_unwaited(t *testing.T) {
	k := newKit(t)
	a, other := k.free(), hal.NewThread()
	k.write(a, is(0, 8))
	k.host(hal.OpSynchronizeStream, other, hal.Operation{Stream: a})
	require.False(t, k.c.Unwaited(other))
	require.True(t, k.c.Unwaited(k.me))
}
