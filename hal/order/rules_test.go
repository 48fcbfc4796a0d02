package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

func TestStreamsHaveNoOrderWithoutAWait(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	w := k.write(a, is(0, 100))
	k.write(a, is(0, 100))
	k.none()
	r := k.read(b, is(50, 150))
	got := k.one(Race, w+1, r)
	require.Equal(t, hal.Range{Start: 1<<20 + 50, Size: 50}, got.Range)
	require.Equal(t, NeverWaited, got.Reason.Why)
	require.True(t, got.First.Write)
	require.False(t, got.Second.Write)
	require.Equal(t, a.Index(), got.First.Stream)
	require.Equal(t, 1000+r, got.Second.Site)
}

func TestReadsDoNotConflict(t *testing.T) {
	k := newKit(t)
	k.read(k.free(), is(0, 10))
	k.read(k.free(), is(0, 10))
	k.hostRead(is(0, 10))
	k.none()
}

func TestAWaitBindsToTheVersionOfItsCall(t *testing.T) {
	k := newKit(t)
	a, b, e := k.free(), k.free(), k.event(hal.Standard)
	k.write(a, is(0, 10))
	k.record(a, e, 1)
	k.wait(b, e, 1)
	w := k.write(a, is(10, 20))
	again := k.record(a, e, 2)
	k.read(b, is(0, 10))
	k.none()
	r := k.read(b, is(10, 20))
	got := k.one(Race, w, r)
	require.Equal(t, OlderRecord, got.Reason.Why)
	require.Equal(t, e.ID(), got.Reason.Wait.Event)
	require.EqualValues(t, 1, got.Reason.Wait.Version)
	require.Equal(t, again, got.Reason.Record.ID)
	require.EqualValues(t, 2, got.Reason.Record.Version)
	k.wait(b, e, 2)
	k.write(b, is(0, 20))
	k.none()
}

func TestWriteAfterRead(t *testing.T) {
	k := newKit(t)
	a, b, c := k.free(), k.free(), k.free()
	k.waitStream(b, a)
	r1 := k.read(a, is(0, 10))
	k.read(b, is(0, 10))
	k.waitStream(c, b)
	w := k.write(c, is(0, 10))
	got := k.one(Race, r1, w)
	require.Equal(t, OtherStream, got.Reason.Why)
	require.Equal(t, b.Index(), got.Reason.Wait.Stream)
}

func TestWaitForAStreamCoversItsWorkSoFar(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	k.write(a, is(0, 10))
	k.waitStream(b, a)
	k.read(b, is(0, 10))
	k.none()
	w := k.write(a, is(0, 10))
	got := k.c.Take()
	require.Len(t, got, 1, "the read and the write behind it")
	require.Equal(t, w, got[0].Second.ID)
	r := k.read(b, is(0, 10))
	require.Equal(t, EarlierWork, k.one(Race, w, r).Reason.Why)
}

func TestOrderIsTransitive(t *testing.T) {
	k := newKit(t)
	a, b, c := k.free(), k.free(), k.stream(1, hal.StreamOptions{NonBlocking: true})
	e, f := k.event(hal.Standard), k.event(hal.Standard)
	k.write(a, is(0, 10))
	k.record(a, e, 1)
	k.wait(b, e, 1)
	k.record(b, f, 1)
	k.wait(c, f, 1)
	k.write(c, is(0, 10))
	k.none()
}

func TestDevices(t *testing.T) {
	k := newKit(t)
	w := k.write(k.ordered(), is(0, 10))
	r := k.read(k.stream(1, hal.StreamOptions{}), is(0, 10))
	got := k.one(Race, w, r)
	require.True(t, got.Reason.Devices)
	require.Equal(t, 1, got.Second.Device)
}

func TestLegacyStreamIsOrderedWithOrderedStreams(t *testing.T) {
	k := newKit(t)
	a, b, n := k.ordered(), k.ordered(), k.free()
	k.write(a, is(0, 10))
	k.write(k.legacy(), is(0, 10))
	k.write(b, is(0, 10))
	k.none()
	w := k.write(n, is(0, 10))
	require.Equal(t, NeverWaited, k.one(Race, w-1, w).Reason.Why)
	l := k.write(k.legacy(), is(0, 10))
	require.Equal(t, NonBlocking, k.one(Race, w, l).Reason.Why)
}

func TestS5_a_wait_on_the_legacy_stream_is_a_barrier(t *testing.T) {
	k := newKit(t)
	for name, wait := range map[string]func(n *hal.Stream, e *hal.Event){
		"for an event":       func(_ *hal.Stream, e *hal.Event) { k.wait(k.legacy(), e, 1) },
		"for a stream":       func(n *hal.Stream, _ *hal.Event) { k.waitStream(k.legacy(), n) },
		"for its own record": func(_ *hal.Stream, e *hal.Event) { k.record(k.legacy(), e, 2); k.wait(k.legacy(), e, 2) },
	} {
		k.c = New()
		a, b, n, e := k.ordered(), k.ordered(), k.free(), k.event(hal.Standard)
		k.write(n, is(20, 30))
		k.record(n, e, 1)
		k.write(a, is(0, 10))
		wait(n, e)
		if name != "for its own record" {
			k.read(b, is(20, 30)) // comes after what the legacy stream waited for
		}
		k.read(b, is(0, 10))
		k.none()
		w := k.write(a, is(40, 50)) // after the wait
		k.one(Race, w, k.read(b, is(40, 50)))
		k.one(Race, w, k.read(n, is(40, 50)))
	}
}

func TestS5_a_held_wait_on_the_legacy_stream_is_a_barrier(t *testing.T) {
	k := newKit(t)
	a, b, n, e, future := k.ordered(), k.ordered(), k.free(), k.event(hal.Standard), k.event(hal.Future)
	k.record(n, e, 1)
	k.wait(a, future, 0)
	k.write(a, is(0, 10))
	k.wait(k.legacy(), e, 1)
	k.write(b, is(0, 10))
	k.record(n, future, 1)
	require.Zero(t, k.c.Stats().Held)
	k.none()
}

func TestSynchronizingTheLegacyStreamCoversOrderedStreams(t *testing.T) {
	k := newKit(t)
	a, n := k.ordered(), k.free()
	k.write(a, is(0, 10))
	w := k.write(n, is(10, 20))
	k.sync(k.legacy())
	k.hostRead(is(0, 10))
	k.none()
	require.Equal(t, NotSynchronized, k.one(Race, w, k.hostRead(is(10, 20))).Reason.Why)
}

func TestWaitingForTheLegacyStreamCoversOrderedStreams(t *testing.T) {
	k := newKit(t)
	a, n := k.ordered(), k.free()
	k.write(a, is(0, 10))
	k.write(k.legacy(), is(10, 20))
	k.write(a, is(20, 30))
	k.waitStream(n, k.legacy())
	k.write(n, is(0, 30))
	k.none()
}

func TestClosedOrderedStreamsStayInTheLegacyOrder(t *testing.T) {
	k := newKit(t)
	a := k.ordered()
	k.write(a, is(0, 10))
	k.host(hal.OpCloseStream, k.me, hal.Operation{Stream: a})
	k.write(k.legacy(), is(0, 10))
	k.none()
	b := k.free()
	k.write(b, is(10, 20))
	k.host(hal.OpCloseStream, k.me, hal.Operation{Stream: b})
	k.host(hal.OpSynchronizeDevice, k.me, hal.Operation{Stream: k.legacy()})
	k.hostWrite(is(0, 20))
	k.none()
}

func TestContextStreamsAreNotOrdered(t *testing.T) {
	k := newKit(t)
	ctx, err := k.device(0).NewContext(k.me)
	require.NoError(t, err)
	s := ctx.DefaultStream()
	w := k.write(s, is(0, 10))
	k.one(Race, w, k.write(k.legacy(), is(0, 10)))
}

func TestPerThreadStreamsAreOrdered(t *testing.T) {
	k := newKit(t)
	s, err := k.device(0).PerThreadStream(k.me)
	require.NoError(t, err)
	k.write(s, is(0, 10))
	k.write(k.legacy(), is(0, 10))
	k.none()
}

func TestStreamsThatBlockTheHostAreSynchronized(t *testing.T) {
	k := newKit(t)
	s := k.stream(0, hal.StreamOptions{BlockHost: true, NonBlocking: true})
	k.write(s, is(0, 10))
	k.hostRead(is(0, 10))
	k.write(k.free(), is(0, 10))
	k.none()
}

func TestMemoryInStreamOrder(t *testing.T) {
	k := newKit(t)
	a, b, e := k.free(), k.free(), k.event(hal.Standard)
	made := k.do(hal.Operation{Kind: hal.OpAllocate, Stream: a, Writes: is(0, 256)})
	k.write(a, is(0, 100))
	k.none()
	early := k.write(b, is(100, 200))
	require.Equal(t, Unallocated, k.one(Race, made, early).Reason.Memory)
	k.record(a, e, 1)
	k.wait(b, e, 1)
	r := k.read(b, is(0, 100))
	k.none()
	freed := k.do(hal.Operation{Kind: hal.OpFree, Stream: a, Writes: is(0, 256)})
	found := k.c.Take()
	require.Len(t, found, 2)
	require.Equal(t, []uint32{r, early}, []uint32{found[0].First.ID, found[1].First.ID})
	require.Equal(t, Freed, found[0].Reason.Memory)
	late := k.read(b, is(0, 10))
	require.Equal(t, Reused, k.one(Race, freed, late).Reason.Memory)
	// Given out again elsewhere: only once the free was reached.
	k.do(hal.Operation{Kind: hal.OpAllocate, Stream: b, Writes: is(0, 128)})
	k.write(b, is(0, 128))
	k.none()
}

func TestNewAndFreedMemoryHasNoPast(t *testing.T) {
	k := newKit(t)
	k.write(k.free(), is(0, 100))
	k.host(hal.OpFreeMemory, k.me, hal.Operation{Writes: is(20, 40)})
	k.write(k.free(), is(20, 40))
	k.none()
	k.host(hal.OpNewMemory, k.me, hal.Operation{Writes: is(40, 100)})
	k.hostWrite(is(40, 100))
	k.none()
	k.write(k.free(), is(0, 20))
	require.Len(t, k.c.Take(), 1)
}

func TestReasonsNameWaitsThatOrderNothing(t *testing.T) {
	k := newKit(t)
	a, b, e := k.free(), k.free(), k.event(hal.Standard)
	w := k.write(a, is(0, 10))
	own := k.record(b, e, 1)
	k.wait(b, e, 1)
	found := k.one(Race, w, k.write(b, is(0, 10)))
	require.Equal(t, OwnRecord, found.Reason.Why)
	require.NotNil(t, found.Reason.Wait)
	require.Greater(t, found.Reason.Wait.ID, own)
	c := k.free()
	w = k.write(a, is(20, 30))
	k.host(hal.OpWaitForNoRecord, k.me, hal.Operation{Stream: c, Event: e})
	require.Equal(t, NoRecord, k.one(Race, w, k.write(c, is(20, 30))).Reason.Why)
	w = k.write(a, is(40, 50))
	k.waitStream(c, b) // a wait for some other stream says more
	require.Equal(t, OtherStream, k.one(Race, w, k.write(c, is(40, 50))).Reason.Why)
}
