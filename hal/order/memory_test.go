package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// The host, or a stream, may wait for all work on a block.
func TestWaitingForMemoryOrdersTheWorkOnIt(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	k.write(a, is(0, 10))
	k.read(b, is(10, 15))
	elsewhere := k.write(b, is(20, 30))
	k.host(hal.OpSynchronizeMemory, k.me, hal.Operation{Reads: is(0, 16)})
	k.hostWrite(is(0, 16))
	k.none()
	k.one(Race, elsewhere, k.hostWrite(is(20, 30)))
	later := k.write(a, is(0, 10))
	k.one(Race, later, k.hostWrite(is(0, 10)))
}

func TestAStreamThatWaitsForMemoryComesAfterTheWorkOnIt(t *testing.T) {
	k := newKit(t)
	a, b, c := k.free(), k.free(), k.free()
	w := k.write(a, is(0, 10))
	k.host(hal.OpWaitMemory, k.me, hal.Operation{Stream: b, Reads: is(0, 10)})
	k.read(b, is(0, 10))
	k.none()
	k.one(Race, w, k.read(c, is(0, 10)))
	k.waitStream(c, b)
	last := k.write(c, is(0, 5))
	k.none()
	k.one(Race, last, k.hostWrite(is(0, 5)))
}

// Streams that do the same in one place must not use up the room of others.
func TestReportsOfTheSameCallsAreBounded(t *testing.T) {
	k := newKit(t)
	for range 50 {
		k.do(hal.Operation{Kind: hal.OpFill, Stream: k.free(), Site: 1, Writes: is(0, 10)})
	}
	require.Len(t, k.c.Take(), maxAlike)
	require.NotZero(t, k.c.Stats().Dropped)
	a, b := k.free(), k.free()
	k.do(hal.Operation{Kind: hal.OpFill, Stream: a, Site: 2, Writes: is(20, 30)})
	k.do(hal.Operation{Kind: hal.OpFill, Stream: b, Site: 3, Writes: is(20, 30)})
	require.Len(t, k.c.Take(), 1)
}
