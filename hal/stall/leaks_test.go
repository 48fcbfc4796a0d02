package stall_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/stall"
)

func TestTrack_listsWhatIsAliveInTheOrderInWhichItWasMade(t *testing.T) {
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	defer rt.Close()
	leaks := stall.Track(rt)
	defer leaks.Stop()
	d, err := rt.Device(0)
	require.NoError(t, err)
	me := hal.NewThread()

	closed, err := d.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	kept, err := d.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	event, err := rt.NewEvent(me, d, hal.EventOptions{})
	require.NoError(t, err)
	block, err := d.Alloc(me, 100)
	require.NoError(t, err)
	require.NoError(t, closed.Close(me))

	var names []string
	alive := leaks.Alive()
	for _, o := range alive {
		names = append(names, o.Kind)
	}
	require.Equal(t, []string{"stream", "event", "memory"}, names)
	require.Equal(t, kept.Index(), alive[0].Number)
	require.Equal(t, event.ID(), alive[1].Number)
	require.EqualValues(t, block.Start, alive[2].Number)

	require.NoError(t, rt.Free(me, block.Start))
	require.NoError(t, event.Close(me))
	require.NoError(t, kept.Close(me))
	require.Empty(t, leaks.Alive())
}
