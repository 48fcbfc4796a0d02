package python

// #include "caller.h"
import "C"

import (
	"halstream/bindings/threads"
	"halstream/bindings/waits"
	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/stall"
)

// Waits that may never end: who waits, and where the program enqueued what is waited for.

// Blocked are the waits of the program's threads that have no limit.
var Blocked stall.Waits

// ForReports is a point that is reached when a queue has a report.
type ForReports interface{ Queue() *hal.Queue }

// BeginWait lists a wait of the calling thread.
func BeginWait(r *hal.Runtime, p driver.Point) *stall.Wait {
	self := C.halstream_this()
	who := stall.Waiter{Thread: threads.Ident(), Point: p, Active: func() bool { return self.handling != 0 }}
	if reports, ok := p.(ForReports); ok {
		who.Reports = reports.Queue()
	}
	return Blocked.Begin(r, who)
}

// BlockedAt knows where the program enqueued what streams are blocked by.
var BlockedAt = stall.NewSites(site)

// RoomLimit returns for how long an allocation waits for memory that pending work still uses.
func RoomLimit() int64 {
	if r := Current(); BlockedAt.AnyGate() || r != nil && r.AwaitsHost() {
		return waits.HeldLimit
	}
	return driver.Forever
}
