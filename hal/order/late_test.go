package order

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

func (k *kit) call(s *hal.Stream) uint32 {
	return k.do(hal.Operation{Kind: hal.OpCall, Stream: s, Token: 7})
}

func TestV4_observed_writes_count_where_the_operation_stands(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	k.write(a, is(0, 10))
	f := k.call(a)
	k.write(a, is(20, 30))
	r := k.read(b, is(20, 40))
	k.c.Take()
	k.c.Observed(f, is(0, 10)) // between the two of its stream
	k.none()
	k.c.Observed(f, is(30, 35))
	got := k.one(Race, f, r)
	require.True(t, got.First.Seen)
	require.True(t, got.First.Write)
	require.False(t, got.Second.Seen)
	require.EqualValues(t, 7, got.First.Token)
	require.Equal(t, hal.Range{Start: 1<<20 + 30, Size: 5}, got.Range)
	w := k.write(b, is(0, 10)) // and for what comes later
	require.True(t, k.one(Race, f, w).First.Seen)
}

func TestObservedWritesAreOrderedBothWays(t *testing.T) {
	k := newKit(t)
	a, b, c := k.free(), k.free(), k.free()
	k.write(a, is(0, 10))
	k.waitStream(b, a)
	f := k.call(b)
	k.waitStream(c, b)
	k.read(c, is(0, 10))
	k.write(c, is(0, 5))
	k.c.Observed(f, is(0, 10))
	k.none()
}

func TestObservedWritesOfHeldOperations(t *testing.T) {
	k := newKit(t)
	a, b, e := k.free(), k.free(), k.event(hal.Future)
	k.wait(b, e, 0)
	f := k.call(b)
	r := k.read(a, is(0, 10))
	require.Equal(t, 1, k.c.Stats().Held)
	k.c.Observed(f, is(0, 10)) // so it ran
	require.Zero(t, k.c.Stats().Held)
	require.Equal(t, r, k.one(Race, f, r).Second.ID)
}

func TestObservedWritesOfUnknownOperationsAreCounted(t *testing.T) {
	k := newKit(t)
	k.c.Observed(77, is(0, 10))
	require.Equal(t, 1, k.c.Stats().Unknown)
	s := k.free()
	first := k.call(s)
	k.id += maxLate
	second := k.call(s)
	k.read(k.free(), is(0, 10))
	k.c.Observed(first, is(0, 10))
	require.Equal(t, 2, k.c.Stats().Unknown)
	k.c.Observed(second, is(0, 10))
	require.Len(t, k.c.Take(), 1)
}

func TestObservedWritesMayComeFromOtherThreads(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	ids := make(chan uint32, 100)
	var done sync.WaitGroup
	done.Go(func() {
		for id := range ids {
			k.c.Observed(id, is(0, 10))
			k.c.Take()
			k.c.Stats()
			k.c.Found()
		}
	})
	for range 500 {
		ids <- k.call(a)
		k.read(b, is(0, 10))
	}
	close(ids)
	done.Wait()
	require.NotZero(t, k.c.Found())
}

// copyFrom is a copy from pinned memory whose source is watched.
func (k *kit) copyFrom(s *hal.Stream, r []hal.Range) uint32 {
	id := k.do(hal.Operation{Kind: hal.OpCopy, Stream: s, Reads: r})
	k.c.Source(id, r[0])
	return id
}

func TestV3_a_refilled_source_is_reported(t *testing.T) {
	k := newKit(t)
	s := k.free()
	k.hostWrite(is(0, 100))
	id := k.copyFrom(s, is(0, 100))
	k.none()
	k.c.Refilled(id, is(0, 100)[0])
	got := k.one(Refill, id, 0)
	require.Equal(t, SourceChanged, got.Reason.Why)
	require.True(t, got.Second.Unknown)
	require.EqualValues(t, 100, got.Range.Size)
	k.c.Refilled(id, is(0, 100)[0])
	k.none()
}

func TestV3_an_ordered_write_may_change_the_source(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	k.write(a, is(0, 50))
	k.waitStream(b, a)
	id := k.copyFrom(b, is(0, 100))
	k.c.Refilled(id, is(0, 100)[0])
	k.none()
	// Done before the call, it explains nothing.
	k.sync(b)
	id = k.copyFrom(b, is(0, 100))
	k.c.Refilled(id, is(0, 100)[0])
	k.one(Refill, id, 0)
}

// A function that declares no writes may have filled the memory, on the stream of the
// copy or before an event that it waited for.
func TestV6_a_function_that_declares_no_writes_may_have_filled_the_source(t *testing.T) {
	for name, other := range map[string]bool{"same stream": false, "by a wait": true} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			a := k.free()
			b := a
			f := k.do(hal.Operation{Kind: hal.OpCall, Stream: a, Reads: is(200, 300)})
			if other {
				b = k.free()
				k.waitStream(b, a)
			}
			id := k.copyFrom(b, is(0, 100))
			k.call(a) // enqueued behind the copy: not this one
			k.c.Refilled(id, is(0, 100)[0])
			got := k.one(Undeclared, f, id)
			require.Equal(t, UndeclaredWrite, got.Reason.Why)
			require.EqualValues(t, 100, got.Range.Size)
		})
	}
}

func TestV6_functions_that_cannot_have_filled_the_source(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	k.call(a)
	k.call(b)
	k.sync(a) // done before the call of the copy
	k.do(hal.Operation{Kind: hal.OpCall, Stream: a, Writes: is(200, 300)})
	k.do(hal.Operation{Kind: hal.OpNative, Stream: a, Name: "aten::sum", Reads: is(200, 300)})
	id := k.copyFrom(a, is(0, 100))
	k.c.Refilled(id, is(0, 100)[0])
	k.one(Refill, id, 0)
}

func TestAnObservedWriteMayChangeTheSource(t *testing.T) {
	k := newKit(t)
	s := k.free()
	f := k.call(s)
	id := k.copyFrom(s, is(0, 100))
	k.c.Refilled(id, is(0, 100)[0])
	k.c.Observed(f, is(90, 91))
	k.none()
}

func TestARefillIsNotReportedBesideItsRace(t *testing.T) {
	k := newKit(t)
	s := k.free()
	id := k.copyFrom(s, is(0, 100))
	w := k.hostWrite(is(0, 100))
	k.c.Refilled(id, is(0, 100)[0])
	k.one(Race, id, w)
	id = k.copyFrom(s, is(0, 100))
	k.c.Refilled(id, is(0, 100)[0])
	w = k.hostWrite(is(0, 100)) // told afterwards
	k.one(Race, id, w)
}

func TestAnOrderedWriteThatIsForgottenSinceMayHaveChangedTheSource(t *testing.T) {
	k := newKit(t)
	s := k.free()
	k.write(s, is(0, 100))
	id := k.copyFrom(s, is(0, 100))
	k.write(s, is(0, 100))
	k.c.Refilled(id, is(0, 100)[0])
	k.none()
}

func TestAReasonKnowsOnlyWaitsBeforeTheOperation(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	w := k.write(a, is(0, 10))
	f := k.call(b)
	k.waitStream(b, a)
	k.c.Observed(f, is(0, 10))
	require.Equal(t, NeverWaited, k.one(Race, w, f).Reason.Why)
}
