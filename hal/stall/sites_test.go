package stall_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/stall"
)

const (
	limit = 30 * time.Second
	step  = time.Millisecond
)

// here returns a table whose next sites are those that the function sets.
func here() (sites *stall.Sites, set func(uint32)) {
	var at uint32
	return stall.NewSites(func() uint32 { return at }), func(site uint32) { at = site }
}

func TestSites_ofGatesAreKnownUntilTheyOpen(t *testing.T) {
	p := newProgram(t)
	sites, set := here()
	s := p.stream()
	require.False(t, sites.AnyGate())
	g := p.hold(s)
	set(7)
	sites.GateMade(g)
	require.EqualValues(t, 7, sites.Of(p.busy()))
	require.True(t, sites.AnyGate())
	gates := sites.Gates()
	require.Len(t, gates, 1)
	require.Equal(t, "gate", gates[0].Kind)
	require.EqualValues(t, 7, gates[0].Site)
	sites.GateOpened(g)
	require.Zero(t, sites.Of(p.busy()))
	require.Empty(t, sites.Gates())
}

func TestSites_ofWaitsForSettableEventsAreKnownUntilTheEventIsClosed(t *testing.T) {
	p := newProgram(t)
	sites, set := here()
	s := p.stream()
	e, err := p.rt.NewEvent(p.me, nil, hal.EventOptions{Kind: hal.Future})
	require.NoError(t, err)
	require.NoError(t, s.Wait(p.me, e))
	set(8)
	sites.WaitMade(s, e)
	require.EqualValues(t, 8, sites.Of(p.busy()))
	sites.EventClosed(e)
	require.Zero(t, sites.Of(p.busy()))
	require.NoError(t, p.stream().Record(p.me, e))
}

func TestSites_ofOtherOperationsAreKnownWhileTheRuntimeIsFollowed(t *testing.T) {
	p := newProgram(t)
	sites, _ := here()
	p.rt.SetSites(func() uint32 { return 9 })
	s, other := p.stream(), p.stream()
	sites.Follow(p.rt)
	sites.Follow(p.rt)
	p.hold(other)
	require.NoError(t, s.WaitStream(p.me, other))
	of := func() uint32 {
		for _, b := range p.rt.Busy() {
			if b.Need == driver.NeedStream {
				return sites.Of(b)
			}
		}
		return 1 << 31
	}
	require.EqualValues(t, 9, of())
	sites.Follow(nil)
	require.Zero(t, of())
}

// It is about the memory of programs that make one stream after another wait for
// one event.
func TestSites_ofStreamsThatHavePassedTheirWaitAreForgotten(t *testing.T) {
	p := newProgram(t)
	asked := 0
	sites, _ := here()
	maker := p.stream()
	e, err := p.rt.NewEvent(p.me, nil, hal.EventOptions{Kind: hal.Future})
	require.NoError(t, err)
	require.NoError(t, maker.Record(p.me, e))
	_, err = maker.Synchronize(p.me, -1)
	require.NoError(t, err)
	for range 400 {
		s := p.stream()
		require.NoError(t, s.Wait(p.me, e))
		sites.WaitMade(s, e)
		_, err = s.Synchronize(p.me, -1)
		require.NoError(t, err)
		require.NoError(t, s.Close(p.me))
		asked = max(asked, sites.Waits(e))
	}
	require.LessOrEqual(t, asked, 17)
	require.NotZero(t, asked)
}
