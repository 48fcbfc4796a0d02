package haltest

/*
#include <sched.h>
#include <stdint.h>
#include <stdio.h>

#include "../native/native.h"

// What the functions below did: one for each argument.
typedef struct {
	int32_t runs, fails, releases, early; // early: releases before the function had run
} hs_test_calls;

static int hs_test_run(void *argument, char *text, size_t room)
{
	hs_test_calls *c = argument;
	__atomic_add_fetch(&c->runs, 1, __ATOMIC_SEQ_CST);
	if (!c->fails) return 0;
	snprintf(text, room, "reason %d", (int)c->fails);
	return c->fails;
}

static int hs_test_fail_silently(void *argument, char *text, size_t room)
{
	(void)text;
	(void)room;
	__atomic_add_fetch(&((hs_test_calls *)argument)->runs, 1, __ATOMIC_SEQ_CST);
	return -1;
}

static void hs_test_release(void *argument)
{
	hs_test_calls *c = argument;
	if (__atomic_load_n(&c->runs, __ATOMIC_SEQ_CST) == 0) __atomic_add_fetch(&c->early, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&c->releases, 1, __ATOMIC_SEQ_CST);
}

// Hands in 2 rows that it reads, and a byte that it writes, in two calls; what fails says is handed in: 0
// these, 1 nothing, 2 that there is nothing.
static int hs_test_hand_in(void *argument, char *text, size_t room)
{
	hs_test_calls *c = argument;
	uint64_t at = (uint64_t)(uintptr_t)argument;
	hs_access rows = {at + 16, 4, 2, 8, 1, 0}, one = {at + 64, 1, 0, 0, 2, 0};
	(void)text;
	(void)room;
	__atomic_add_fetch(&c->runs, 1, __ATOMIC_SEQ_CST);
	if (c->fails == 1) return 0;
	return hs_hand_in(&rows, c->fails == 0) | hs_hand_in(&one, c->fails == 0);
}

// Waits as long as `fails` is not 0.
static int hs_test_wait(void *argument, char *text, size_t room)
{
	hs_test_calls *c = argument;
	(void)text;
	(void)room;
	__atomic_add_fetch(&c->runs, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&c->fails, __ATOMIC_SEQ_CST) != 0) sched_yield();
	return 0;
}

static uint64_t hs_test_function(int which)
{
	return which == 0   ? (uint64_t)(uintptr_t)hs_test_run
	       : which == 1 ? (uint64_t)(uintptr_t)hs_test_fail_silently
	       : which == 2 ? (uint64_t)(uintptr_t)hs_test_release
	       : which == 3 ? (uint64_t)(uintptr_t)hs_test_hand_in
	                    : (uint64_t)(uintptr_t)hs_test_wait;
}
*/
import "C"

import (
	"runtime"
	"strconv"
	"sync/atomic"
	"unsafe"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// newCalls is what native functions did with one argument, in pinned memory.
type calls struct{ p *C.hs_test_calls }

func newCalls(k *Kit, fails int) calls {
	_, bytes := k.Pinned(256)
	clear(bytes)
	c := calls{(*C.hs_test_calls)(unsafe.Pointer(&bytes[0]))}
	c.p.fails = C.int32_t(fails)
	return c
}

func (c calls) runs() int32 { return atomic.LoadInt32((*int32)(&c.p.runs)) }

// released waits until the argument was released, which may be after the operation
// counts as dropped.
func (c calls) released(k *Kit) int32 {
	k.Eventually(func() bool { return atomic.LoadInt32((*int32)(&c.p.releases)) > 0 }, "an argument was not released")
	return atomic.LoadInt32((*int32)(&c.p.releases))
}

// loadFunction returns the operation that works on c.
func (c calls) function(name string) *hal.NativeFunc {
	return &hal.NativeFunc{Name: name, Function: uint64(C.hs_test_function(0)), Argument: uint64(uintptr(unsafe.Pointer(c.p))),
		Release: uint64(C.hs_test_function(2))}
}

// handingIn returns the operation that may access c, and hands in what handsIn says.
func (c calls) handingIn() *hal.NativeFunc {
	f := c.function("index")
	f.Function, f.HandsIn = uint64(C.hs_test_function(3)), true
	f.Accesses = []hal.Access{{Start: f.Argument, Bytes: 256, Mode: hal.Writes}}
	return f
}

func (c calls) handsIn() hal.Accesses {
	at := uint64(uintptr(unsafe.Pointer(c.p)))
	switch c.p.fails {
	case 0:
		return hal.Accesses{Reads: []hal.Range{{Start: at + 16, Size: 4}, {Start: at + 24, Size: 4}},
			Writes: []hal.Range{{Start: at + 64, Size: 1}}}
	case 1:
		return hal.Accesses{Writes: []hal.Range{{Start: at, Size: 256}}}
	}
	return hal.Accesses{}
}

var nativeFuncCases = []testCase{
	{"W4_a_native_function_that_runs_is_listed_with_its_thread", Memory, func(k *Kit) {
		if !k.RT.ReportsWaits() {
			return
		}
		s := k.Stream(ordinary)
		door := k.Block(s)
		k.Entered(door)
		busy := k.RT.Busy()
		require.Len(k, busy, 1)
		require.Equal(k, driver.NeedNative, busy[0].Need)
		if runtime.GOOS == "linux" {
			require.FileExists(k, "/proc/self/task/"+strconv.FormatUint(busy[0].Number, 10)+"/syscall")
		}
		k.Eventually(func() bool { quiet, _ := k.RT.Quiet(); return quiet },
			"whether the function may go on is not for the device to say")
		door.Open()
		k.Sync(s)
		require.Empty(k, k.RT.Busy())
	}},
	{"W4_a_native_function_that_can_fail_is_listed_with_its_thread_if_it_awaits_others", Memory, func(k *Kit) {
		if !k.RT.ReportsWaits() {
			return
		}
		for _, awaits := range []bool{true, false} {
			s, c := k.Stream(ordinary), newCalls(k, 1)
			f := c.function("collective")
			f.Function, f.AwaitsOthers = uint64(C.hs_test_function(4)), awaits
			require.NoError(k, s.NativeFunc(k.Me, f))
			k.Eventually(func() bool { return c.runs() > 0 }, "the function does not begin")
			busy := k.RT.Busy()
			atomic.StoreInt32((*int32)(&c.p.fails), 0)
			k.Sync(s)
			require.Len(k, busy, 1)
			require.Equal(k, awaits, busy[0].Need == driver.NeedNative && busy[0].Number != 0, "%+v", busy[0])
		}
	}},
	{"C2_the_error_of_a_native_function_is_its_streams_once", Memory, func(k *Kit) {
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		bad, good := newCalls(k, 7), newCalls(k, 0)
		require.NoError(k, s.NativeFunc(k.Me, bad.function("add")))
		require.NoError(k, s.NativeFunc(k.Me, good.function("add")))
		k.Sync(other)
		_, err := s.Synchronize(k.Me, int64(Limit))
		require.ErrorIs(k, err, hal.ErrHostFunction)
		require.ErrorContains(k, err, "add: reason 7")
		require.EqualValues(k, 1, good.runs(), "later work runs")
		require.EqualValues(k, 1, s.Failures())
		k.Sync(s)
	}},
	{"C2_the_first_of_several_errors_is_returned", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		first, second := newCalls(k, 1), newCalls(k, 2)
		require.NoError(k, s.NativeFunc(k.Me, first.function("")))
		require.NoError(k, s.NativeFunc(k.Me, second.function("")))
		_, err := s.Synchronize(k.Me, int64(Limit))
		require.ErrorContains(k, err, "a native function: reason 1")
		require.EqualValues(k, 2, s.Failures())
		k.Sync(s)
	}},
	{"V45_a_function_hands_in_what_it_accesses", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		seen := k.HandedIn()
		functions := []calls{newCalls(k, 0), newCalls(k, 1), newCalls(k, 2)}
		for _, c := range functions {
			require.NoError(k, s.NativeFunc(k.Me, c.handingIn()))
		}
		k.Sync(s)
		k.Eventually(func() bool { return len(seen()) == len(functions) }, "not all have handed in")
		for i, c := range functions {
			require.Equal(k, c.handsIn(), seen()[i].accesses, "function %d", i)
		}
	}},
	{"V45_a_function_of_a_graph_hands_in_in_each_launch", FourQueues | Graphs | Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		c := newCalls(k, 0)
		k.Capture(s)
		require.NoError(k, s.NativeFunc(k.Me, c.handingIn()))
		x := k.Executable(k.EndCapture(s))
		seen := k.HandedIn()
		k.Launch(x, s, s)
		k.Sync(s)
		if !k.RT.ReportsWaits() {
			return // the vendor's graphs do not tell of their nodes, which count with what they declared
		}
		k.Eventually(func() bool { return len(seen()) == 2 }, "not all have handed in")
		require.NotEqual(k, seen()[0].id, seen()[1].id)
		for _, one := range seen() {
			require.Equal(k, c.handsIn(), one.accesses)
		}
	}},
	{"V45_a_function_that_is_dropped_accesses_nothing", Gates | Memory | Aborts, func(k *Kit) {
		s := k.Stream(ordinary)
		gate, err := s.Gate(k.Me)
		require.NoError(k, err)
		defer gate.Open()
		seen := k.HandedIn()
		require.NoError(k, s.NativeFunc(k.Me, newCalls(k, 0).handingIn()))
		_, err = s.Abort(k.Me)
		require.NoError(k, err)
		k.Eventually(func() bool { return len(seen()) == 1 }, "the function has handed in nothing")
		require.Equal(k, hal.Accesses{}, seen()[0].accesses)
	}},
	{"C2_a_function_may_fail_without_a_text", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		f := newCalls(k, 0).function("mul")
		f.Function = uint64(C.hs_test_function(1))
		require.NoError(k, s.NativeFunc(k.Me, f))
		_, err := s.Synchronize(k.Me, int64(Limit))
		require.ErrorContains(k, err, "mul: it failed")
	}},
	{"C2_events_and_devices_return_the_error_of_a_stream", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		require.NoError(k, k.Device(0).Failure())
		require.NoError(k, s.NativeFunc(k.Me, newCalls(k, 3).function("div")))
		e := k.Event(hal.EventOptions{})
		k.Record(s, e)
		done, err := e.Synchronize(k.Me, int64(Limit))
		require.True(k, done)
		require.NoError(k, err)
		require.ErrorContains(k, e.Failure(), "div: reason 3")
		require.NoError(k, e.Failure())
		require.NoError(k, k.Device(0).Failure(), "it was returned")
		require.NoError(k, s.NativeFunc(k.Me, newCalls(k, 4).function("div")))
		_, err = k.Device(0).Synchronize(k.Me, int64(Limit))
		require.NoError(k, err)
		require.ErrorContains(k, k.Device(0).Failure(), "div: reason 4")
		require.NoError(k, k.Device(0).Failure())
		k.Sync(s)
	}},
	{"C3_an_argument_is_released_once_after_its_function", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		for _, fails := range []int{0, 5} {
			c := newCalls(k, fails)
			require.NoError(k, s.NativeFunc(k.Me, c.function("")))
			_, _ = s.Synchronize(k.Me, int64(Limit))
			require.EqualValues(k, 1, c.released(k))
			require.EqualValues(k, 1, c.runs())
			require.Zero(k, c.p.early)
		}
	}},
	{"C3_what_an_abort_drops_is_released_and_does_not_run", Memory | Aborts, func(k *Kit) {
		s := k.Stream(ordinary)
		hold := Hold(k, s).Started()
		c := newCalls(k, 0)
		require.NoError(k, s.NativeFunc(k.Me, c.function("")))
		n, err := s.Abort(k.Me)
		require.NoError(k, err)
		require.Equal(k, 1, n)
		require.EqualValues(k, 1, c.released(k))
		hold.Release()
		k.Sync(s)
		require.Zero(k, c.runs())
	}},
	{"C3_what_is_refused_is_neither_run_nor_released", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		c := newCalls(k, 0)
		for _, change := range []func(*hal.NativeFunc){
			func(f *hal.NativeFunc) { f.Function = 0 },
			func(f *hal.NativeFunc) { f.Accesses = []hal.Access{{Start: 16, Bytes: 1, Mode: 4}} },
			func(f *hal.NativeFunc) { f.Accesses = []hal.Access{{Start: 16, Bytes: 1}} },
			func(f *hal.NativeFunc) { f.Accesses = []hal.Access{{Start: 1 << 63, Bytes: 1 << 63, Mode: hal.Reads}} },
			func(f *hal.NativeFunc) {
				f.Accesses = []hal.Access{{Start: 16, Bytes: 8, Rows: 1 << 40, Pitch: 1 << 40, Mode: hal.Reads}}
			},
		} {
			f := c.function("")
			change(f)
			require.ErrorIs(k, s.NativeFunc(k.Me, f), hal.ErrInvalidValue)
		}
		require.NoError(k, s.Close(k.Me))
		require.ErrorIs(k, s.NativeFunc(k.Me, c.function("")), hal.ErrClosed)
		_, err := k.Device(0).Synchronize(k.Me, int64(Limit))
		require.NoError(k, err)
		require.Zero(k, c.runs())
		require.Zero(k, c.p.releases)
	}},
	{"C4_listeners_see_name_site_and_rows_of_a_native_function", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		c, a := newCalls(k, 0), k.Alloc(0, 1<<16)
		var got []hal.Operation
		stop := k.RT.Listen(func(o hal.Operation) {
			if !o.Host {
				got = append(got, o)
			}
		})
		defer stop()
		f := c.function("aten::add")
		f.Site = 12345
		f.Accesses = []hal.Access{
			{Start: a.Start, Bytes: 10, Rows: 3, Pitch: 50, Mode: hal.Reads},
			{Start: a.Start, Bytes: 10, Mode: hal.Reads | hal.Writes},
			{Start: a.Start + 100, Bytes: 8, Rows: 4, Pitch: 8, Mode: hal.Writes},
			{Start: a.Start + 200, Bytes: 8, Rows: 3, Pitch: 4, Mode: hal.Writes},
			{Start: a.Start + 300, Bytes: 4, Rows: 9, Mode: hal.Writes},
			{Start: a.Start, Bytes: 1, Rows: 5000, Pitch: 2, Mode: hal.Writes},
			{Start: a.Start, Rows: 5000, Pitch: 2, Mode: hal.Writes},
		}
		require.NoError(k, s.NativeFunc(k.Me, f))
		k.Sync(s)
		require.Len(k, got, 1)
		require.Equal(k, hal.OpNative, got[0].Kind)
		require.Equal(k, "aten::add", got[0].Name)
		require.EqualValues(k, 12345, got[0].Site)
		first := hal.Range{Start: a.Start, Size: 10}
		require.Equal(k, append(rows(a.Start, 50), first), got[0].Reads)
		require.Equal(k, []hal.Range{first, {Start: a.Start + 100, Size: 32}, {Start: a.Start + 200, Size: 16},
			{Start: a.Start + 300, Size: 4}, {Start: a.Start, Size: 9999}}, got[0].Writes)
	}},
	{"C4_a_pinned_block_is_in_use_until_the_function_has_run", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		h, _ := k.Pinned(small)
		c := newCalls(k, 0)
		hold := Hold(k, s).Started()
		f := c.function("aten::copy_")
		f.Accesses = []hal.Access{{Start: h.Start + 8, Bytes: 4, Mode: hal.Reads}}
		require.NoError(k, s.NativeFunc(k.Me, f))
		err := k.RT.FreeHost(k.Me, h.Start, false)
		require.ErrorIs(k, err, hal.ErrNotReady)
		require.ErrorContains(k, err, "aten::copy_")
		hold.Release()
		k.Sync(s)
		require.NoError(k, k.RT.FreeHost(k.Me, h.Start, false))
	}},
}
