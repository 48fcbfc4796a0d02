package cuda

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// drainLimit is after how long a call of the driver is reported that may wait until the
// device is idle, while streams are held.
var drainLimit = 2 * time.Second

// drainReports takes the reports. The thread in question may hold Python's lock, and the
// caller cannot get an error as long as the driver does not return.
var drainReports io.Writer = os.Stderr

// mayDrain begins a call of the driver that may wait until the device is idle, and
// returns what ends it. What holds the device may wait for the caller; no signal ends
// the call, so a report says which call it is and what it waits for.
func (d *Device) mayDrain(call string) (end func()) {
	if !d.hostHolds() {
		return func() {}
	}
	timer := time.AfterFunc(drainLimit, func() {
		names := d.holders(4)
		if len(names) == 0 {
			return
		}
		fmt.Fprintf(drainReports, "halstream: %s has not returned for %v. A driver may wait there until device %d is idle, "+
			"and these streams wait for the host: %s. Let another thread release them, or call what needs %s before a "+
			"stream is held (see \"Calls that may wait for the device\" in docs/backends.md).\n",
			call, drainLimit, d.ordinal, strings.Join(names, "; "), call)
	})
	return func() { timer.Stop() }
}

// hostHolds reports whether streams of the device wait for the host.
func (d *Device) hostHolds() bool { return d.calling.Load() > 0 || d.drv.poller.held(d) > 0 }

// holders describes the streams that wait for the host, at most most of them. It calls no driver.
func (d *Device) holders(most int) (names []string) {
	more := 0
	for _, s := range d.streams.all() {
		what := s.heldFor()
		if what == "" {
			continue
		}
		if len(names) == most {
			more++
			continue
		}
		names = append(names, fmt.Sprintf("stream %d for %s", s.id, what))
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return names
}

// heldFor names the operation for which the stream waits for the host, "" if there is none.
func (s *Stream) heldFor() string {
	if token := s.function.Load(); token != 0 {
		return fmt.Sprintf("function %d, which runs", token)
	}
	if titles := s.dev.drv.poller.titles(s, 1); len(titles) > 0 {
		return titles[0]
	}
	return ""
}
