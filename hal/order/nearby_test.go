package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

func TestV40_records_and_waits_around_a_finding_are_given_first(t *testing.T) {
	p := newProof(t)
	p.write(first, p.a)
	other := p.stream()
	event, err := p.rt.NewEvent(p.me, nil, hal.EventOptions{})
	require.NoError(t, err)
	nops(t, other, p.me, 20)
	require.NoError(t, p.a.Record(p.me, event))
	require.NoError(t, other.Wait(p.me, event))
	nops(t, other, p.me, 100)
	p.write(second, p.b)
	found := p.session.Take(false)
	require.Len(t, found, 1)
	all, near := p.session.Nearby([][]uint32{{found[0].First.ID, found[0].Second.ID}, {1 << 30}}, 8)
	require.Len(t, near, 2)
	require.Empty(t, near[1])
	require.Len(t, near[0], 8)
	require.IsIncreasing(t, near[0])
	var kinds []string
	for _, at := range near[0] {
		kinds = append(kinds, all[at].Kind.String())
	}
	require.Subset(t, kinds, []string{"record", "wait"})
	require.Equal(t, found[0].First.ID, all[near[0][0]].ID)
	require.Equal(t, found[0].Second.ID, all[near[0][7]].ID)
	require.NotZero(t, all[near[0][0]].ThreadID)
}

func nops(t *testing.T, s *hal.Stream, me *hal.Thread, n int) {
	for range n {
		require.NoError(t, s.Nop(me))
	}
}

func TestV40_a_session_that_was_stopped_has_nothing_around_a_finding(t *testing.T) {
	p := newProof(t)
	p.write(first, p.a)
	p.write(second, p.b)
	found := p.session.Take(false)
	p.session.Stop()
	all, near := p.session.Nearby([][]uint32{{found[0].First.ID}}, 8)
	require.Empty(t, all)
	require.Equal(t, [][]int{nil}, near)
}
