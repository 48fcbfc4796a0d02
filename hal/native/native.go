// Package native calls C functions that can fail.
package native

/*
#include <stdlib.h>

#include "native.h"

enum { HS_TEXT = 1024 };

static void hs_release(uint64_t function, uint64_t argument)
{
	((void (*)(void *))(uintptr_t)function)((void *)(uintptr_t)argument);
}
*/
import "C"

import (
	"strings"
	"sync"
	"unsafe"
)

// rooms are buffers for texts, one for each call that runs.
var rooms = sync.Pool{New: func() any { return new([textSize]C.char) }}

// textSize is how many bytes of text a function can leave, the last one included.
const textSize = C.HS_TEXT

// Call calls int f(void *argument, char *text, size_t room) and reports whether it
// returned another number than 0, with the text that it left.
func Call(function, argument uint64) (text string, failed bool) { return call(function, argument, nil) }

func call(function, argument uint64, handed *C.hs_handed) (text string, failed bool) {
	room := rooms.Get().(*[textSize]C.char)
	defer rooms.Put(room)
	if C.hs_call(C.uint64_t(function), C.uint64_t(argument), &room[0], textSize, handed) == 0 {
		return "", false
	}
	return strings.ToValidUTF8(C.GoString(&room[0]), "\uFFFD"), true
}

// Access is a part of memory that a function hands in, as halstream_range of halstream.h.
type Access struct {
	Start, Bytes, Rows, Pitch uint64
	Mode                      uint32
}

// CallHandsIn is Call for a function that may hand in what it accesses (hs_hand_in): some
// says whether it has.
func CallHandsIn(function, argument uint64) (text string, failed bool, accesses []Access, some bool) {
	// In C's memory: the function keeps its address while it runs.
	handed := (*C.hs_handed)(C.calloc(1, C.sizeof_hs_handed))
	defer C.free(unsafe.Pointer(handed))
	text, failed = call(function, argument, handed)
	if handed.list != nil {
		defer C.free(unsafe.Pointer(handed.list))
	}
	for _, a := range unsafe.Slice(handed.list, handed.count) {
		accesses = append(accesses, Access{uint64(a.start), uint64(a.bytes), uint64(a.rows), uint64(a.pitch), uint32(a.mode)})
	}
	return text, failed, accesses, handed.some != 0
}

// Release calls void f(void *argument).
func Release(function, argument uint64) { C.hs_release(C.uint64_t(function), C.uint64_t(argument)) }
