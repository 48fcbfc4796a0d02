// Package native calls C functions that can fail.
package native

/*
#include <stdint.h>

enum { HS_TEXT = 1024 };

static int hs_call(uint64_t function, uint64_t argument, char *text)
{
	text[0] = 0;
	int failed = ((int (*)(void *, char *, unsigned long))(uintptr_t)function)((void *)(uintptr_t)argument, text, HS_TEXT);
	text[HS_TEXT - 1] = 0;
	return failed;
}

static void hs_release(uint64_t function, uint64_t argument)
{
	((void (*)(void *))(uintptr_t)function)((void *)(uintptr_t)argument);
}
*/
import "C"

import (
	"strings"
	"sync"
)

// rooms are buffers for texts, one for each call that runs.
var rooms = sync.Pool{New: func() any { return new([textSize]C.char) }}

// textSize is how many bytes of text a function can leave, the last one included.
const textSize = C.HS_TEXT

// Call calls int f(void *argument, char *text, size_t room) and reports whether it
// returned another number than 0, with the text that it left.
func Call(function, argument uint64) (text string, failed bool) {
	room := rooms.Get().(*[textSize]C.char)
	defer rooms.Put(room)
	if C.hs_call(C.uint64_t(function), C.uint64_t(argument), &room[0]) == 0 {
		return "", false
	}
	return strings.ToValidUTF8(C.GoString(&room[0]), "\uFFFD"), true
}

// Release calls void f(void *argument).
func Release(function, argument uint64) { C.hs_release(C.uint64_t(function), C.uint64_t(argument)) }
