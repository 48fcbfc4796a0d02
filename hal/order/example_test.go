package order_test

import (
	"fmt"

	"halstream/hal"
	"halstream/hal/order"
)

// Two fills of the same bytes on two streams, and no wait between them.
func ExampleSession() {
	rt, err := hal.OpenBackend("host", 1)
	if err != nil {
		panic(err)
	}
	defer rt.Close()
	session := order.NewSession(false)
	session.Follow(rt)
	defer session.Stop()

	d, _ := rt.Device(0)
	me := hal.NewThread()
	a, _ := d.NewStream(me, hal.StreamOptions{NonBlocking: true})
	b, _ := d.NewStream(me, hal.StreamOptions{NonBlocking: true})
	x, _ := d.Alloc(me, 256)
	_ = a.Fill(me, x.Start, 1, 1, 256)
	_ = b.Fill(me, x.Start+64, 2, 1, 64) // nothing orders the two
	for _, f := range session.Take(true) {
		fmt.Printf("%s: %s and %s access %d bytes, from byte %d of %d: %s\n", f.Category, f.First.Kind, f.Second.Kind,
			f.Range.Size, f.Range.Start-f.Block.Start, f.Block.Size, f.Reason.Why)
	}
	// Output: race: fill and fill access 64 bytes, from byte 64 of 256: never waited
}
