// Package capitest calls the functions of halstream.h as a C program does, for tests:
// test files cannot contain C.
package capitest

/*
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../python/halstream/include/halstream.h"

// Defined by package capi, which the test's binary contains.
extern const halstream_api *halstream_get_api(uint32_t version) __attribute__((weak));

static const halstream_api *table(uint32_t version) { return halstream_get_api ? halstream_get_api(version) : NULL; }

// What an operation did.
typedef struct {
	atomic_int runs, releases, fails;
	halstream_id gate; // opened by the function, if not 0
	int code;          // that a call inside the function has returned
	halstream_range hands_in;
} outcome;

static int run(void *argument, char *text, size_t room)
{
	outcome *o = argument;
	const halstream_api *api = table(1);
	atomic_fetch_add(&o->runs, 1);
	if (o->hands_in.bytes) return o->code = api->hand_in(&o->hands_in, 1);
	if (o->gate != 0) o->code = api->gate_open(o->gate);
	else o->code = api->nop(16);
	if (!o->fails) return 0;
	snprintf(text, room, "%s", "wrong");
	return 1;
}

static void release(void *argument) { atomic_fetch_add(&((outcome *)argument)->releases, 1); }

static int enqueue(halstream_id stream, const char *name, uint32_t flags, halstream_range *ranges, size_t count, outcome *o)
{
	halstream_operation op = {.size = sizeof op, .name = name, .flags = flags, .ranges = ranges, .count = count,
	                          .run = run, .argument = o, .release = release};
	return table(1)->enqueue(stream, &op);
}

static int stream_new(int32_t d, halstream_id *id) { return table(1)->stream_new(d, 0, HALSTREAM_STREAM_NON_BLOCKING, id); }
static int stream_synchronize(halstream_id id, int64_t ns) { return table(1)->stream_synchronize(id, ns); }
static int stream_drain(halstream_id id, int64_t ns) { return table(1)->stream_drain(id, ns); }
static int stream_capture(halstream_id id, uint64_t *c) { return table(1)->stream_capture(id, c); }
static int stream_query(halstream_id id, int *done) { return table(1)->stream_query(id, done); }
static int stream_wait_event(halstream_id id, halstream_id e) { return table(1)->stream_wait_event(id, e); }
static int stream_close(halstream_id id) { return table(1)->stream_close(id); }
static int event_new(int32_t d, halstream_id *id) { return table(1)->event_new(d, 0, id); }
static int event_record(halstream_id e, halstream_id s) { return table(1)->event_record(e, s); }
static int event_synchronize(halstream_id e, int64_t ns) { return table(1)->event_synchronize(e, ns); }
static int event_close(halstream_id e) { return table(1)->event_close(e); }
static int gate_new(halstream_id s, halstream_id *id) { return table(1)->gate_new(s, id); }
static int gate_open(halstream_id id) { return table(1)->gate_open(id); }
static int block_new(halstream_id s, uint64_t n, halstream_id *id, uint64_t *at) { return table(1)->block_new(s, n, id, at); }
static int block_new_in_order(halstream_id s, uint64_t n, halstream_id *id, uint64_t *at) { return table(1)->block_new_in_order(s, n, id, at); }
static int block_free(halstream_id id) { return table(1)->block_free(id); }
static int device_failure(int32_t d, char *text, size_t room) { return table(1)->device_failure(d, text, room); }
static const char *error_text(void) { return table(1)->error_text(); }
*/
import "C"

import "unsafe"

// ID is a number of an object.
type ID = int64

// Result is what a call returned.
type Result struct {
	Code int
	Text string // of the error, "" without one
}

// Codes that tests compare with.
const (
	OK             = C.HALSTREAM_OK
	Timeout        = C.HALSTREAM_TIMEOUT
	Closed         = C.HALSTREAM_CLOSED
	InvalidHandle  = C.HALSTREAM_INVALID_HANDLE
	InHostFunction = C.HALSTREAM_IN_HOST_FUNCTION
	FunctionFailed = C.HALSTREAM_FUNCTION_FAILED
	ShutDown       = C.HALSTREAM_SHUT_DOWN
	DeviceLost     = C.HALSTREAM_DEVICE_LOST
)

func result(code C.int) Result {
	if code == C.HALSTREAM_OK {
		return Result{}
	}
	return Result{int(code), C.GoString(C.error_text())}
}

// Has reports whether there is a table of this version.
func Has(version uint32) bool { return C.table(C.uint32_t(version)) != nil }

// Outcome is what the function of an operation did. Its memory is C's.
type Outcome struct {
	c     *C.outcome
	flags C.uint32_t
}

// NewOutcome returns the outcome of an operation whose function fails or not, and opens
// a gate if that is not 0.
func NewOutcome(fails bool, gate ID) Outcome {
	o := (*C.outcome)(C.calloc(1, C.sizeof_outcome))
	if fails {
		o.fails = 1
	}
	o.gate = C.int64_t(gate)
	return Outcome{c: o}
}

// LosesDevice returns o for a function with whose error its device is lost.
func (o Outcome) LosesDevice() Outcome {
	o.flags = C.HALSTREAM_LOSES_DEVICE
	return o
}

// HandsIn returns o for a function that hands in a range, with the flag for that or without it.
func (o Outcome) HandsIn(r Range, flagged bool) Outcome {
	*(*Range)(unsafe.Pointer(&o.c.hands_in)) = r
	if flagged {
		o.flags = C.HALSTREAM_HANDS_IN
	}
	return o
}

// DeviceFailure returns the error with which a device was lost.
func DeviceFailure(device int) (text string, r Result) {
	var room [256]C.char
	r = result(C.device_failure(C.int32_t(device), &room[0], C.size_t(len(room))))
	return C.GoString(&room[0]), r
}

// CodeOfSynchronize is StreamSynchronize without a look at the text of the error.
func CodeOfSynchronize(stream ID, limit int64) int {
	return int(C.stream_synchronize(C.int64_t(stream), C.int64_t(limit)))
}

// Counts returns how often the function ran and its argument was released.
func (o Outcome) Counts() (runs, releases int) { return int(o.c.runs), int(o.c.releases) }

// Inside returns the code of the call that the function made.
func (o Outcome) Inside() int { return int(o.c.code) }

// Range is a range of an operation.
type Range struct {
	Start, Bytes, Rows, Pitch uint64
	Access                    uint32
	_                         uint32
}

// Enqueue enqueues an operation.
func Enqueue(stream ID, name string, ranges []Range, o Outcome) Result {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	list := (*C.halstream_range)(C.calloc(C.size_t(len(ranges)+1), C.sizeof_halstream_range))
	defer C.free(unsafe.Pointer(list))
	copy(unsafe.Slice((*Range)(unsafe.Pointer(list)), len(ranges)), ranges)
	return result(C.enqueue(C.int64_t(stream), text, o.flags, list, C.size_t(len(ranges)), o.c))
}

// The functions of the same names.

func StreamNew(device int) (id ID, r Result) {
	r = result(C.stream_new(C.int32_t(device), (*C.int64_t)(&id)))
	return id, r
}

func StreamSynchronize(id ID, ns int64) Result {
	return result(C.stream_synchronize(C.int64_t(id), C.int64_t(ns)))
}

func StreamDrain(id ID, ns int64) Result { return result(C.stream_drain(C.int64_t(id), C.int64_t(ns))) }

func StreamCapture(id ID) (capture uint64, r Result) {
	var n C.uint64_t
	r = result(C.stream_capture(C.int64_t(id), &n))
	return uint64(n), r
}

func StreamQuery(id ID) (done bool, r Result) {
	var n C.int
	r = result(C.stream_query(C.int64_t(id), &n))
	return n != 0, r
}

func StreamWaitEvent(id, event ID) Result {
	return result(C.stream_wait_event(C.int64_t(id), C.int64_t(event)))
}

func StreamClose(id ID) Result { return result(C.stream_close(C.int64_t(id))) }

func EventNew(device int) (id ID, r Result) {
	r = result(C.event_new(C.int32_t(device), (*C.int64_t)(&id)))
	return id, r
}

func EventRecord(id, stream ID) Result {
	return result(C.event_record(C.int64_t(id), C.int64_t(stream)))
}

func EventSynchronize(id ID, ns int64) Result {
	return result(C.event_synchronize(C.int64_t(id), C.int64_t(ns)))
}

func EventClose(id ID) Result { return result(C.event_close(C.int64_t(id))) }

func GateNew(stream ID) (id ID, r Result) {
	r = result(C.gate_new(C.int64_t(stream), (*C.int64_t)(&id)))
	return id, r
}

func GateOpen(id ID) Result { return result(C.gate_open(C.int64_t(id))) }

func BlockNew(stream ID, size uint64) (id ID, address uint64, r Result) {
	r = result(C.block_new(C.int64_t(stream), C.uint64_t(size), (*C.int64_t)(&id), (*C.uint64_t)(&address)))
	return id, address, r
}

func BlockNewInOrder(stream ID, size uint64) (id ID, address uint64, r Result) {
	r = result(C.block_new_in_order(C.int64_t(stream), C.uint64_t(size), (*C.int64_t)(&id), (*C.uint64_t)(&address)))
	return id, address, r
}

func BlockFree(id ID) Result { return result(C.block_free(C.int64_t(id))) }
