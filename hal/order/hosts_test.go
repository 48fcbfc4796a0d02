package order

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

func TestHostAccesses(t *testing.T) {
	k := newKit(t)
	s := k.free()
	k.hostWrite(is(0, 10))
	k.read(s, is(0, 10))
	k.none()
	w := k.hostWrite(is(0, 10))
	got := k.one(Race, w-1, w)
	require.Equal(t, NotSynchronized, got.Reason.Why)
	require.True(t, got.Second.Host)
	require.Equal(t, -1, got.Second.Device)
	require.Equal(t, k.me.ID, got.Second.Thread)
	k.sync(s)
	k.hostWrite(is(0, 10))
	k.none()
	k.write(s, is(0, 10))
	r := k.hostRead(is(0, 10))
	require.Equal(t, SynchronizedEarlier, k.one(Race, r-1, r).Reason.Why)
}

func TestV1_synchronizing_an_event_covers_its_version_only(t *testing.T) {
	k := newKit(t)
	s, e := k.free(), k.event(hal.Standard)
	k.write(s, is(0, 10))
	k.record(s, e, 1)
	w := k.write(s, is(10, 20))
	k.record(s, e, 2)
	k.host(hal.OpSynchronizeEvent, k.me, hal.Operation{Event: e, Version: 1})
	k.hostRead(is(0, 10))
	k.none()
	k.one(Race, w, k.hostRead(is(10, 20)))
	k.host(hal.OpSynchronizeEvent, k.me, hal.Operation{Event: e, Version: 2})
	k.hostRead(is(10, 20))
	k.none()
}

func TestSynchronizingADeviceCoversAllItsStreams(t *testing.T) {
	k := newKit(t)
	a, b, c := k.free(), k.ordered(), k.stream(1, hal.StreamOptions{})
	k.write(a, is(0, 10))
	k.write(b, is(10, 20))
	w := k.write(c, is(20, 30))
	k.host(hal.OpSynchronizeDevice, k.me, hal.Operation{Stream: k.legacy()})
	k.hostWrite(is(0, 20))
	k.none()
	k.one(Race, w, k.hostWrite(is(20, 30)))
}

func TestV2_a_query_orders_only_its_control_path(t *testing.T) {
	k := newKit(t)
	a, b, e := k.free(), k.free(), k.event(hal.Standard)
	w := k.write(a, is(0, 10))
	k.record(a, e, 1)
	k.host(hal.OpQueryEvent, k.me, hal.Operation{Event: e, Version: 1})
	k.one(ByQuery, w, k.read(b, is(0, 10)))
	k.one(ByQuery, w, k.hostRead(is(0, 10)))
	k.wait(b, e, 1)
	k.read(b, is(0, 10))
	k.none()
	w = k.write(a, is(20, 30))
	k.host(hal.OpQueryStream, k.me, hal.Operation{Stream: a})
	k.one(ByQuery, w, k.hostRead(is(20, 30)))
	k.sync(a)
	k.hostRead(is(20, 30))
	k.none()
}

func TestAQueryOfTheRuntimeOrdersLikeASynchronize(t *testing.T) {
	k := newKit(t)
	a := k.free()
	k.write(a, is(0, 10))
	k.host(hal.OpQueryStream, k.me, hal.Operation{Stream: a, Internal: true})
	k.hostRead(is(0, 10))
	k.none()
}

func TestV2_host_threads_have_no_order_of_their_own(t *testing.T) {
	k := newKit(t)
	other := hal.NewThread()
	k.host(hal.OpHostRead, other, hal.Operation{Reads: is(900, 901)}) // from now on it is known
	a, b := k.free(), k.free()
	w := k.write(a, is(0, 10))
	k.sync(a)
	r := k.host(hal.OpHostRead, other, hal.Operation{Reads: is(0, 10)})
	require.Equal(t, NotSynchronized, k.one(ByTiming, w, r).Reason.Why)
	w = k.hostWrite(is(20, 30))
	r = k.do(hal.Operation{Kind: hal.OpFill, Stream: b, Thread: other, Reads: is(20, 30)})
	require.Equal(t, HostThreads, k.one(ByTiming, w, r).Reason.Why)
	// What no synchronize covered is a race, whoever looks.
	w = k.write(a, is(40, 50))
	r = k.host(hal.OpHostRead, other, hal.Operation{Reads: is(40, 50)})
	k.one(Race, w, r)
	k.host(hal.OpSynchronizeStream, other, hal.Operation{Stream: a})
	k.host(hal.OpHostWrite, other, hal.Operation{Writes: is(40, 50)})
	k.none()
	// A query of one thread, seen by another: not only a query.
	w = k.write(b, is(60, 70))
	k.host(hal.OpQueryStream, k.me, hal.Operation{Stream: b})
	k.one(ByTiming, w, k.host(hal.OpHostRead, other, hal.Operation{Reads: is(60, 70)}))
}

func TestANewThreadKnowsWhatTheOthersKnew(t *testing.T) {
	k := newKit(t)
	a := k.free()
	k.write(a, is(0, 10))
	k.hostWrite(is(20, 30))
	k.sync(a)
	w := k.write(a, is(40, 50))
	other := hal.NewThread()
	k.host(hal.OpHostWrite, other, hal.Operation{Writes: is(0, 30)})
	k.none()
	k.one(Race, w, k.host(hal.OpHostWrite, other, hal.Operation{Writes: is(40, 50)}))
}

func TestANewThreadKnowsOnlyWhatAllOthersKnew(t *testing.T) {
	k := newKit(t)
	second, third := hal.NewThread(), hal.NewThread()
	k.hostRead(is(900, 901))
	k.host(hal.OpHostRead, second, hal.Operation{Reads: is(900, 901)})
	a, b := k.free(), k.free()
	k.write(a, is(0, 10))
	k.sync(a)
	others := k.write(b, is(10, 20))
	k.host(hal.OpSynchronizeStream, second, hal.Operation{Stream: b})
	k.write(a, is(20, 30))
	k.sync(a)
	k.host(hal.OpSynchronizeStream, second, hal.Operation{Stream: a})
	k.host(hal.OpHostRead, third, hal.Operation{Reads: is(20, 30)})
	k.none()
	k.one(ByTiming, others, k.host(hal.OpHostRead, third, hal.Operation{Reads: is(10, 20)}))
	k.host(hal.OpHostRead, third, hal.Operation{Reads: is(0, 10)})
	k.none() // the same stream as what both know, and earlier
}

func TestThreadsThatEndedAreForgotten(t *testing.T) {
	k := newKit(t)
	k.hostWrite(is(0, 1))
	for range 50 {
		k.host(hal.OpHostWrite, hal.NewThread(), hal.Operation{Writes: is(10, 20)})
	}
	require.Equal(t, 51, k.c.Stats().Threads)
	deadline := time.Now().Add(10 * time.Second)
	for k.c.Stats().Threads > 2 {
		require.True(t, time.Now().Before(deadline), "threads that ended are still there")
		runtime.GC()
		k.c.mu.Lock()
		k.c.tidy()
		k.c.mu.Unlock()
	}
	k.c.Take()
	k.write(k.free(), is(0, 1))
	k.none()
}

// A synchronize is told when it returned. What another thread enqueued on the
// stream meanwhile was not waited for; the number of the operation tells.
func TestASynchronizeCoversWhatWasEnqueuedBeforeIt(t *testing.T) {
	k := newKit(t)
	other := hal.NewThread()
	k.host(hal.OpHostRead, other, hal.Operation{Reads: is(900, 901)})
	s := k.free()
	k.write(s, is(0, 10))
	k.id++
	began := k.id
	for range 3 {
		k.do(hal.Operation{Kind: hal.OpFill, Stream: s, Thread: other, Writes: is(10, 20)})
	}
	last := k.id
	k.c.Handle(hal.Operation{ID: began, Seq: uint64(began), Kind: hal.OpSynchronizeStream, Stream: s, Thread: k.me, Host: true})
	k.hostWrite(is(0, 10))
	k.none()
	k.one(Race, last, k.hostWrite(is(10, 20)))
}

func TestWhoTidiesUpIsNoThread(t *testing.T) {
	k := newKit(t)
	k.write(k.free(), is(0, 10))
	for _, kind := range []hal.OperationKind{hal.OpNewStream, hal.OpCloseEvent, hal.OpNewMemory, hal.OpFreeMemory, hal.OpOpenGate} {
		k.host(kind, hal.NewThread(), hal.Operation{Event: k.event(hal.Standard)})
	}
	require.Equal(t, 1, k.c.Stats().Threads)
}

func TestCallersWithoutAThreadAreOne(t *testing.T) {
	k := newKit(t)
	s := k.free()
	k.c.Handle(hal.Operation{ID: 1, Seq: 1, Kind: hal.OpHostWrite, Host: true, Writes: is(0, 10)})
	k.c.Handle(hal.Operation{ID: 2, Seq: 2, Kind: hal.OpCopy, Stream: s, Reads: is(0, 10)})
	k.none()
}

func TestV9_the_staging_read_of_a_copy_comes_after_earlier_copies_of_its_stream(t *testing.T) {
	k := newKit(t)
	s, other := k.free(), k.free()
	copied := k.do(hal.Operation{Kind: hal.OpCopy, Stream: s, Writes: is(0, 10)})
	k.host(hal.OpHostRead, k.me, hal.Operation{Stream: s, Reads: is(0, 10)})
	k.none()
	// The thread itself comes after nothing, and no other stream does.
	k.one(Race, copied, k.hostRead(is(0, 10)))
	k.host(hal.OpHostRead, k.me, hal.Operation{Stream: other, Reads: is(0, 10)})
	got := k.c.Take()
	require.Len(t, got, 1)
	require.Equal(t, copied, got[0].First.ID)
	// A function of the stream may write when the source has been staged already.
	written := k.write(s, is(20, 30))
	k.host(hal.OpHostRead, k.me, hal.Operation{Stream: s, Reads: is(20, 30)})
	got = k.c.Take()
	require.Len(t, got, 1)
	require.Equal(t, written, got[0].First.ID)
}
