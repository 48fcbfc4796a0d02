package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

func TestV7_what_is_acquired_comes_after_what_was_released(t *testing.T) {
	k := newKit(t)
	other := hal.NewThread()
	k.host(hal.OpHostRead, other, hal.Operation{Reads: is(900, 901)}) // from now on it is known
	s := k.free()
	k.write(s, is(0, 10))
	k.sync(s)
	k.c.Order(k.me, Release, 7, 0)
	k.write(s, is(20, 30))
	k.sync(s)
	late := k.id - 1
	k.c.Order(other, Acquire, 8, 0) // another object
	k.one(ByTiming, late-2, k.host(hal.OpHostRead, other, hal.Operation{Reads: is(0, 10)}))
	k.c.Order(other, Acquire, 7, 0)
	k.host(hal.OpHostWrite, other, hal.Operation{Writes: is(0, 10)})
	k.none()
	k.one(ByTiming, late, k.host(hal.OpHostRead, other, hal.Operation{Reads: is(20, 30)})) // behind the release
	k.c.Order(k.me, Forget, 7, 0)
	require.Empty(t, k.c.host.released)
}

func TestV7_a_thread_comes_after_its_beginning_only(t *testing.T) {
	k := newKit(t)
	k.c.ObserveThreads()
	other := hal.NewThread()
	k.hostWrite(is(0, 10))
	k.c.Order(k.me, Release, 7, 0)
	k.c.Order(other, Begin, 7, 0)
	w := k.hostWrite(is(20, 30))
	k.host(hal.OpHostRead, other, hal.Operation{Reads: is(0, 10)})
	k.none()
	k.one(ByTiming, w, k.host(hal.OpHostRead, other, hal.Operation{Reads: is(20, 30)}))
}

func TestV7_a_thread_that_is_older_than_the_check_comes_after_nothing(t *testing.T) {
	k := newKit(t)
	old := hal.NewThread()
	k.c.ObserveThreads()
	w := k.hostWrite(is(0, 10))
	k.one(ByTiming, w, k.host(hal.OpHostRead, old, hal.Operation{Reads: is(0, 10)}))
}

// A native library starts threads that nobody sees begin.
func TestV2_a_thread_that_was_not_seen_to_begin_comes_after_what_it_acquired_only(t *testing.T) {
	k := newKit(t)
	k.c.ObserveThreads()
	w := k.hostWrite(is(0, 10))
	k.one(ByTiming, w, k.host(hal.OpHostRead, hal.NewThread(), hal.Operation{Reads: is(0, 10)}))
	k.c.Order(k.me, Release, 7, 0)
	later := k.hostWrite(is(20, 30))
	other := hal.NewThread()
	k.c.Order(other, Acquire, 7, 0)
	k.host(hal.OpHostRead, other, hal.Operation{Reads: is(0, 10)})
	k.none()
	k.one(ByTiming, later, k.host(hal.OpHostRead, other, hal.Operation{Reads: is(20, 30)}))
}

// A function that sets an event ran: so did all that it comes after.
func TestV7_what_a_function_released_comes_after_the_work_before_it(t *testing.T) {
	k := newKit(t)
	s := k.free()
	k.write(s, is(0, 10))
	k.do(hal.Operation{Kind: hal.OpCall, Stream: s, Token: 7})
	k.write(s, is(20, 30))
	later := k.id
	k.c.Order(hal.NewThread(), Release, 1, 7)
	k.c.Order(k.me, Acquire, 1, 0)
	k.hostWrite(is(0, 10))
	k.none()
	k.one(Race, later, k.hostWrite(is(20, 30)))
}
