package python

// #include "collected.h"
// #include <stdlib.h>
import "C"

import (
	"sync/atomic"
	"unsafe"

	"halstream/hal"
)

// Streams that capture and that the collector takes: see collected.h.

// LeaveCaptures ends the part in captures of the streams whose owners were collected since the last call.
func LeaveCaptures() {
	if atomic.LoadInt32((*int32)(unsafe.Pointer(&C.halstream_noted))) == 0 {
		return
	}
	for n := C.halstream_take_notes(); n != nil; {
		if s, ok := Find(int64(n.id)).(*hal.Stream); ok {
			s.LeaveCapture()
			EndLines(s)
		}
		next := n.next
		C.free(unsafe.Pointer(n))
		n = next
	}
}
