package pybuild

// #include "sites.h"
import "C"

import (
	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/stall"
)

// blockedAt knows where the program enqueued what streams are blocked by.
var blockedAt = stall.NewSites(site)

// site returns where the calling thread's program is.
func site() uint32 { return uint32(C.halstream_site()) }

// line returns where the calling thread's program is, as far as captures want to know.
func line() uint32 { return uint32(C.halstream_line()) }

func keepGate(g driver.Gate) { blockedAt.GateMade(g) }

func dropGate(g driver.Gate) { blockedAt.GateOpened(g) }

func keepWait(s *hal.Stream, e *hal.Event) { blockedAt.WaitMade(s, e) }

func dropWaits(e *hal.Event) { blockedAt.EventClosed(e) }
