package stall_test

import (
	"fmt"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/stall"
)

// The only thread of a program waits for a stream behind a gate that nobody opens.
func Example() {
	rt, err := hal.OpenBackend("host", 1)
	if err != nil {
		panic(err)
	}
	defer rt.Close()
	d, _ := rt.Device(0)
	me := hal.NewThread()
	s, _ := d.NewStream(me, hal.StreamOptions{})
	gate, _ := s.Gate(me)

	const thisThread = 1
	done, _ := s.Point(me)
	var waits stall.Waits
	wait := waits.Begin(rt, stall.Waiter{Thread: thisThread, Point: done})
	defer wait.End()
	for !done.Wait(stall.Slice(rt, driver.Forever, 10_000_000)) {
		if !wait.Due() {
			continue
		}
		graph := stall.Graph{Blocked: waits.Blocked(), Streams: rt.Busy()}
		stuck := graph.Stuck(thisThread)
		wait.Answered(false)
		if len(stuck) > 0 {
			fmt.Printf("%d parties can never go on; stream %d waits for a gate: %t\n",
				len(stuck), graph.Streams[0].At.Stream, graph.Streams[0].Need == driver.NeedGate)
			gate.Open()
		}
	}
	// Output: 2 parties can never go on; stream 1 waits for a gate: true
}
