package hal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// TestL5_a_context_forgets_closed_streams makes and closes streams one after the
// other, and keeps one that was closed with work pending.
func TestL5_a_context_forgets_closed_streams(t *testing.T) {
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	defer rt.Close()
	me := hal.NewThread()
	dev, err := rt.Device(0)
	require.NoError(t, err)
	ctx, err := dev.NewContext(me)
	require.NoError(t, err)
	held, err := ctx.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	g, err := held.Gate(me)
	require.NoError(t, err)
	require.NoError(t, held.Close(me))
	for range 1000 {
		s, err := ctx.NewStream(me, hal.StreamOptions{})
		require.NoError(t, err)
		require.NoError(t, s.Nop(me))
		done, err := s.Synchronize(me, driver.Forever)
		require.NoError(t, err)
		require.True(t, done)
		require.NoError(t, s.Close(me))
	}
	require.Less(t, hal.ContextStreams(ctx), 64)
	p, err := ctx.Point(me)
	require.NoError(t, err)
	require.False(t, p.Wait(0), "the closed stream that is held belongs to the context")
	g.Open()
	require.True(t, p.Wait(driver.Forever))
}
