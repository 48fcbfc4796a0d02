package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

func collected(l *hal.Logged) (list []hal.Operation) {
	for _, o := range l.All() {
		list = append(list, o)
	}
	return list
}

// Two logs mark the same objects in turns, and each goes on after a Take.
func TestLogsKnowTheObjectsOfOperationsWhileAnotherLogCollects(t *testing.T) {
	s, o, e := benchStreams(t)
	rt, me := s.Device().Runtime(), hal.NewThread()
	one, two := rt.Log(false), rt.Log(true)
	t.Cleanup(one.Stop)
	t.Cleanup(two.Stop)
	for range 2 {
		require.NoError(t, s.Nop(me))
		require.NoError(t, s.Record(me, e))
		require.NoError(t, o.Wait(nil, e))
		require.NoError(t, o.WaitStream(me, s))
		for _, log := range []*hal.Log{one, two} {
			got := collected(log.Take())
			require.Len(t, got, 4)
			require.Equal(t, []any{hal.OpNop, s, me}, []any{got[0].Kind, got[0].Stream, got[0].Thread})
			require.Equal(t, []any{hal.OpRecord, s, e}, []any{got[1].Kind, got[1].Stream, got[1].Event})
			require.Equal(t, []any{hal.OpWait, o, e, (*hal.Thread)(nil)}, []any{got[2].Kind, got[2].Stream, got[2].Event, got[2].Thread})
			require.Equal(t, []any{hal.OpWaitStream, o, s}, []any{got[3].Kind, got[3].Stream, got[3].Other})
			require.Empty(t, collected(log.Take()))
		}
	}
}
