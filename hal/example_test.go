package hal_test

import (
	"fmt"

	"halstream/hal"
	"halstream/hal/driver"
)

// Two streams, ordered by an event.
func Example() {
	rt, err := hal.OpenBackend("host", 4)
	if err != nil {
		panic(err)
	}
	defer rt.Close()
	d, _ := rt.Device(0)
	me := hal.NewThread()
	copies, _ := d.NewStream(me, hal.StreamOptions{NonBlocking: true})
	kernels, _ := d.NewStream(me, hal.StreamOptions{NonBlocking: true})
	ready, _ := rt.NewEvent(me, nil, hal.EventOptions{})

	_ = copies.Nop(me)
	_ = copies.Record(me, ready)
	_ = kernels.Wait(me, ready)
	done, err := kernels.Synchronize(me, driver.Forever)
	fmt.Println(done, err)
	// Output: true <nil>
}
