package host_test

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

func TestX7_memory_that_is_given_out_holds_nothing_of_before(t *testing.T) {
	k := under(t, "latest", driver.Caller{})
	const size = 3000
	junk := bytes.Repeat([]byte{0xff}, size)
	// The memory is not Go's, so its address may be a number.
	at := func(addr uint64) []byte { return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), size) }
	device, err := k.dev.Alloc(k.me, size)
	require.NoError(t, err)
	assert.Equal(t, junk, at(device.Start))
	pinned, err := k.rt.AllocHost(k.me, size)
	require.NoError(t, err)
	assert.Equal(t, junk, at(pinned.Start))
	for range 2 { // taken from the device, and then from what the pool keeps
		b, err := k.a.AllocAsync(k.me, size)
		require.NoError(t, err)
		clear(at(b.Start))
		before := k.order()
		k.sync(k.a)
		assert.NotEqual(t, before, k.order(), "it is an operation of the stream")
		assert.Equal(t, junk, at(b.Start))
		require.NoError(t, k.a.FreeAsync(k.me, b.Start))
	}
}
