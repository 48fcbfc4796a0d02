package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// TestV28_nodes_without_a_path_are_reported_when_the_capture_ends has no launch.
func TestV28_nodes_without_a_path_are_reported_when_the_capture_ends(t *testing.T) {
	for name, test := range map[string]struct{ early, late, found bool }{
		"a fork before the write": {early: true, found: true},
		"a fork behind it":        {late: true},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			main, side := k.free(), k.free()
			b, err := k.device(0).Alloc(k.me, 64)
			require.NoError(t, err)
			stop := k.rt.Listen(k.c.Handle)
			defer stop()
			require.NoError(t, main.BeginCapture(k.me, hal.RelaxedMode))
			fork := func(now bool) {
				if now {
					require.NoError(t, side.WaitStream(k.me, main))
				}
			}
			fork(test.early)
			require.NoError(t, main.Fill(k.me, b.Start, 1, 1, 64))
			fork(test.late)
			require.NoError(t, side.Fill(k.me, b.Start+32, 2, 1, 32))
			require.NoError(t, main.WaitStream(k.me, side))
			k.none()
			_, err = main.EndCapture(k.me)
			require.NoError(t, err)
			reports := k.c.Take()
			if !test.found {
				require.Empty(t, reports)
				return
			}
			require.Len(t, reports, 1)
			r := reports[0]
			require.Equal(t, NoPath, r.Reason.Why)
			require.Equal(t, hal.Range{Start: b.Start + 32, Size: 32}, r.Range)
			require.Equal(t, []uint64{main.Index(), side.Index()}, []uint64{r.First.Stream, r.Second.Stream})
		})
	}
}
