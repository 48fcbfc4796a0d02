package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

func TestAWaitMayComeBeforeItsRecord(t *testing.T) {
	k := newKit(t)
	a, b, e := k.free(), k.free(), k.event(hal.Future)
	k.wait(b, e, 0)
	k.read(b, is(0, 20))
	require.Equal(t, 1, k.c.Stats().Held)
	k.write(a, is(0, 10))
	k.none() // what b does is not known yet
	k.record(a, e, 1)
	require.Zero(t, k.c.Stats().Held)
	k.none()
	w := k.write(a, is(10, 20))
	got := k.one(Race, 2, w)
	require.Equal(t, b.Index(), got.First.Stream)
}

func TestWhatIsHeldIsReportedInTheOrderOfTheCalls(t *testing.T) {
	k := newKit(t)
	a, b, e := k.free(), k.free(), k.event(hal.Future)
	k.wait(b, e, 0)
	k.read(b, is(0, 10))
	k.record(a, e, 1)
	k.none()
	k.do(hal.Operation{Kind: hal.OpReset, Stream: b, Event: e, Version: 1})
	k.wait(b, e, 1)
	r2 := k.read(b, is(20, 30))
	w := k.write(k.free(), is(20, 30))
	k.record(a, e, 2)
	k.one(Race, r2, w)
}

func TestHeldStreamsHoldThoseThatDependOnThem(t *testing.T) {
	k := newKit(t)
	a, b, c, d := k.free(), k.free(), k.free(), k.free()
	e, f := k.event(hal.Future), k.event(hal.Standard)
	k.wait(b, e, 0)
	k.write(b, is(0, 10))
	k.record(b, f, 1)
	after := k.write(b, is(10, 20))
	k.wait(c, f, 1)
	k.read(c, is(0, 10))
	k.waitStream(d, b)
	after2 := k.write(b, is(20, 30))
	k.read(d, is(0, 20))
	require.Equal(t, 3, k.c.Stats().Held)
	k.none()
	k.record(a, e, 1)
	require.Zero(t, k.c.Stats().Held)
	k.none()
	// Not more than what was enqueued by then.
	k.one(Race, after, k.read(c, is(10, 20)))
	k.one(Race, after2, k.read(d, is(20, 30)))
}

func TestTheLegacyStreamIsHeldByOrderedStreams(t *testing.T) {
	k := newKit(t)
	a, b, c, e := k.free(), k.ordered(), k.ordered(), k.event(hal.Future)
	k.wait(b, e, 0)
	k.write(b, is(0, 10))
	k.write(k.legacy(), is(0, 20))
	k.write(c, is(0, 30))
	require.Equal(t, 3, k.c.Stats().Held)
	k.record(a, e, 1)
	require.Zero(t, k.c.Stats().Held)
	k.none()
	k.one(Race, 4, k.write(a, is(20, 30)))
}

func TestAnEventStaysSetUntilItsReset(t *testing.T) {
	k := newKit(t)
	a, b, c, e := k.free(), k.free(), k.free(), k.event(hal.Future)
	k.write(a, is(0, 10))
	k.record(a, e, 1)
	later := k.write(a, is(10, 20))
	k.record(a, e, 2)
	k.wait(b, e, 2)
	k.read(b, is(0, 10))
	k.none()
	k.one(Race, later, k.read(b, is(10, 20))) // the first record was enough
	k.do(hal.Operation{Kind: hal.OpReset, Stream: b, Event: e, Version: 2})
	k.wait(c, e, 2)
	k.read(c, is(0, 10))
	require.Equal(t, 1, k.c.Stats().Held)
	k.record(a, e, 3)
	k.none()
}

func TestOfUnorderedRecordsOnlyWhatBothKnowIsCertain(t *testing.T) {
	k := newKit(t)
	a, b, c, d, e := k.free(), k.free(), k.free(), k.free(), k.event(hal.Future)
	k.write(d, is(0, 10))
	k.waitStream(a, d)
	k.waitStream(b, d)
	k.write(a, is(10, 20))
	k.record(a, e, 1)
	w := k.write(b, is(20, 30))
	k.record(b, e, 2)
	k.wait(c, e, 2)
	k.write(c, is(0, 10))
	k.none()
	k.one(Race, 4, k.write(c, is(10, 20)))
	k.one(Race, w, k.write(c, is(20, 30)))
}

func TestWhatTheHostKnowsDoneIsNotHeld(t *testing.T) {
	for name, known := range map[string]func(k *kit, b *hal.Stream, f *hal.Event){
		"stream": func(k *kit, b *hal.Stream, _ *hal.Event) { k.sync(b) },
		"event": func(k *kit, b *hal.Stream, f *hal.Event) {
			k.host(hal.OpSynchronizeEvent, k.me, hal.Operation{Event: f, Version: 1})
		},
		"device": func(k *kit, b *hal.Stream, f *hal.Event) {
			k.host(hal.OpSynchronizeDevice, k.me, hal.Operation{Stream: k.legacy()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			a, b, e, f := k.free(), k.free(), k.event(hal.Future), k.event(hal.Standard)
			k.record(a, e, 1)
			k.do(hal.Operation{Kind: hal.OpReset, Stream: a, Event: e, Version: 1})
			k.wait(b, e, 1)
			k.write(b, is(0, 10))
			k.record(b, f, 1)
			require.Equal(t, 1, k.c.Stats().Held)
			known(k, b, f)
			require.Zero(t, k.c.Stats().Held)
			k.hostRead(is(0, 10))
			k.none()
		})
	}
}

func TestFinishLooksAtWhatIsHeld(t *testing.T) {
	k := newKit(t)
	a, b, c, e := k.free(), k.free(), k.free(), k.event(hal.Future)
	k.wait(b, e, 0)
	w := k.write(b, is(0, 10))
	k.waitStream(c, b)
	k.read(c, is(0, 10))
	r := k.read(a, is(0, 10))
	k.host(hal.OpCloseStream, k.me, hal.Operation{Stream: b})
	k.none()
	k.c.Finish()
	require.Zero(t, k.c.Stats().Held)
	k.one(Race, w, r)
	require.Equal(t, 2, k.c.Stats().Streams)
}

func TestMemoryThatIsGivenOutAgainIsNotHeld(t *testing.T) {
	k := newKit(t)
	b, s, e := k.free(), k.free(), k.event(hal.Future)
	k.wait(b, e, 0)
	k.write(b, is(0, 256))
	k.do(hal.Operation{Kind: hal.OpFree, Stream: b, Writes: is(0, 256)})
	k.do(hal.Operation{Kind: hal.OpAllocate, Stream: s, Writes: is(0, 256)})
	k.write(s, is(0, 256))
	require.Zero(t, k.c.Stats().Held)
	k.none()
	k.do(hal.Operation{Kind: hal.OpReset, Stream: b, Event: e})
	k.wait(b, e, 0)
	k.write(b, is(300, 310))
	k.host(hal.OpNewMemory, k.me, hal.Operation{Writes: is(300, 310)})
	k.hostWrite(is(300, 310))
	k.none()
}

func TestAFutureEventOlderThanTheCheckerIsSet(t *testing.T) {
	k := newKit(t)
	b, e := k.free(), k.event(hal.Future)
	k.wait(b, e, 3)
	k.read(b, is(0, 10))
	require.Zero(t, k.c.Stats().Held)
	k.none()
}

// What the clock of the host covers is forgotten, but not while an operation is held that was
// enqueued before the host knew it.
func TestHeldOperationsAreComparedWithWhatTheHostKnowsSince(t *testing.T) {
	k := newKit(t)
	a, b, e := k.free(), k.free(), k.event(hal.Future)
	k.wait(b, e, 0)
	r := k.read(b, is(0, 10))
	w := k.write(a, is(0, 10))
	k.sync(a)
	k.hostRead(is(0, 10))
	k.none()
	k.c.Finish()
	k.one(Race, r, w)
}

// A thread that has seen a stream done comes after all that the stream waited for.
func TestWhatIsDoneIsPerformedBehindWhatItNeeds(t *testing.T) {
	k := newKit(t)
	c, b, e := k.free(), k.free(), k.event(hal.Future)
	k.do(hal.Operation{Kind: hal.OpNop, Stream: c})
	k.wait(b, e, 0)
	k.write(b, is(0, 10))
	k.waitStream(c, b)
	k.read(c, is(0, 10))
	k.sync(c)
	require.Zero(t, k.c.Stats().Held)
	k.none()
}

func TestWhatIsEnqueuedWhileTheHostWaitsStaysHeld(t *testing.T) {
	k := newKit(t)
	other := hal.NewThread()
	k.host(hal.OpHostRead, other, hal.Operation{Reads: is(900, 901)})
	b, e, f := k.free(), k.event(hal.Future), k.event(hal.Future)
	k.wait(b, e, 0)
	k.write(b, is(0, 10))
	k.id++
	began := k.id
	k.do(hal.Operation{Kind: hal.OpWait, Stream: b, Thread: other, Event: f})
	w := k.do(hal.Operation{Kind: hal.OpFill, Stream: b, Thread: other, Writes: is(10, 20)})
	k.c.Handle(hal.Operation{ID: began, Seq: uint64(began), Kind: hal.OpSynchronizeStream, Stream: b, Thread: k.me, Host: true})
	require.Equal(t, 1, k.c.Stats().Held)
	r := k.hostRead(is(0, 20))
	k.none()
	k.do(hal.Operation{Kind: hal.OpRecord, Stream: k.free(), Thread: other, Event: f, Version: 1})
	require.Zero(t, k.c.Stats().Held)
	k.one(ByTiming, w, r)
}

func TestClosedStreamsStayInTheLegacyOrderWhileOthersAreHeld(t *testing.T) {
	k := newKit(t)
	a, b, n, e := k.ordered(), k.free(), k.free(), k.event(hal.Future)
	k.write(a, is(0, 10))
	k.host(hal.OpCloseStream, k.me, hal.Operation{Stream: a})
	k.wait(b, e, 0)
	k.waitStream(n, k.legacy())
	k.read(n, is(0, 10))
	k.none()
	k.write(k.legacy(), is(20, 30))
	k.read(k.legacy(), is(0, 10))
	k.none()
}
