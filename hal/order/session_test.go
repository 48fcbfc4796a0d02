package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/order"
)

// program is a program with a runtime of its own: two streams without an order
// between them.
type program struct {
	t    *testing.T
	rt   *hal.Runtime
	me   *hal.Thread
	a, b *hal.Stream
}

func newProgram(t *testing.T, follow *order.Session) *program {
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	if follow != nil {
		follow.Follow(rt)
	}
	p := &program{t: t, rt: rt, me: hal.NewThread()}
	p.a, p.b = p.stream(), p.stream()
	return p
}

func (p *program) stream() *hal.Stream {
	d, err := p.rt.Device(0)
	require.NoError(p.t, err)
	s, err := d.NewStream(p.me, hal.StreamOptions{NonBlocking: true})
	require.NoError(p.t, err)
	return s
}

func (p *program) memory(size int64) *hal.Block {
	d, err := p.rt.Device(0)
	require.NoError(p.t, err)
	b, err := d.Alloc(p.me, size)
	require.NoError(p.t, err)
	return b
}

func (p *program) fill(s *hal.Stream, start, count uint64) {
	require.NoError(p.t, s.Fill(p.me, start, 1, 1, count))
}

func (p *program) synchronize() {
	for _, s := range []*hal.Stream{p.a, p.b} {
		done, err := s.Synchronize(p.me, driver.Forever)
		require.NoError(p.t, err)
		require.True(p.t, done)
	}
}

func (p *program) race() {
	block := p.memory(256)
	p.fill(p.a, block.Start, 256)
	p.fill(p.b, block.Start, 256)
	p.synchronize()
	require.NoError(p.t, p.rt.Free(p.me, block.Start))
}

func TestSession_keepsWhatAReportIsAbout(t *testing.T) {
	session := order.NewSession(false)
	p := newProgram(t, session)
	site := uint32(0)
	p.rt.SetSites(func() uint32 { site++; return site })
	block := p.memory(256)
	made := site
	p.fill(p.a, block.Start, 256)
	p.fill(p.b, block.Start+64, 64)
	require.Equal(t, 1, session.Found())
	p.synchronize()
	require.NoError(t, p.rt.Free(p.me, block.Start))

	found := session.Take(false)
	require.Len(t, found, 1)
	require.Equal(t, order.Race, found[0].Category)
	require.Equal(t, hal.Range{Start: block.Start + 64, Size: 64}, found[0].Range)
	require.Equal(t, hal.DeviceMemory, found[0].Kind)
	require.Equal(t, hal.Range{Start: block.Start, Size: 256}, found[0].Block, "as it was before it was freed")
	require.Equal(t, made, found[0].BlockSite)
	require.EqualValues(t, 256, found[0].FirstSize)
	require.EqualValues(t, 64, found[0].SecondSize)
	require.Zero(t, session.Found())
	require.Empty(t, session.Take(true))
}

func TestSession_knowsWhereStreamsAndLiveMemoryWereMade(t *testing.T) {
	session := order.NewSession(false)
	p := newProgram(t, session)
	p.rt.SetSites(func() uint32 { return 7 })
	s, block, freed := p.stream(), p.memory(16), p.memory(16)
	require.NoError(t, p.rt.Free(p.me, freed.Start))
	origins := session.Origins()
	require.Contains(t, origins, order.Origin{Kind: "stream", Number: s.Index(), Site: 7})
	require.Contains(t, origins, order.Origin{Kind: "memory", Number: block.Start, Site: 7})
	require.NotContains(t, origins, order.Origin{Kind: "memory", Number: freed.Start, Site: 7})
}

func TestSession_followsOneRuntimeAfterAnother(t *testing.T) {
	session := order.NewSession(false)
	first := newProgram(t, session)
	first.race()
	operations := session.Stats().Operations
	second := newProgram(t, session)
	second.race()
	first.race() // it is not followed any more
	require.Len(t, session.Take(true), 2)
	require.Equal(t, 2, session.Stats().Reports)
	require.Greater(t, session.Stats().Operations, operations)

	session.Stop()
	second.race()
	require.Empty(t, session.Take(true))
	require.Equal(t, 2, session.Stats().Reports, "counts stay")
	session.Stop()
}

func TestSession_namesTheLatestRecordOnly(t *testing.T) {
	for _, again := range []bool{false, true} {
		session := order.NewSession(false)
		p := newProgram(t, session)
		e, err := p.rt.NewEvent(p.me, nil, hal.EventOptions{})
		require.NoError(t, err)
		block := p.memory(64)
		p.fill(p.a, block.Start, 64)
		require.NoError(t, p.a.Record(p.me, e))
		if again { // a wait for the event would now be a wait for this
			require.NoError(t, p.b.Record(p.me, e))
		}
		p.fill(p.b, block.Start, 64)
		found := session.Take(true)
		require.Len(t, found, 1)
		require.Equal(t, again, found[0].Reason.Record == nil)
		p.synchronize()
	}
}

func TestSession_forgetsMemoryThatMayBeAllocatedAgain(t *testing.T) {
	session := order.NewSession(false)
	p := newProgram(t, session)
	block := p.memory(64)
	p.fill(p.a, block.Start, 64)
	session.Forget(p.me, hal.Range{Start: block.Start, Size: 64})
	p.fill(p.b, block.Start, 64)
	require.Empty(t, session.Take(true))
	p.synchronize()
	session.Stop()
	session.Forget(p.me, hal.Range{Start: block.Start, Size: 64}) // nothing is followed
}

// A session may be queried while the program runs on other threads.
func TestSession_isAskedWhileTheProgramRuns(t *testing.T) {
	session := order.NewSession(true)
	p := newProgram(t, session)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 200 {
			p.race()
		}
	}()
	for asking := true; asking; {
		select {
		case <-ended:
			asking = false
		default:
		}
		session.Take(true)
		session.Found()
		session.Origins()
		session.Stats()
	}
	require.NotZero(t, session.Stats().Reports)
}

func TestM24_a_free_that_waits_for_nothing_is_an_access_of_the_host(t *testing.T) {
	for _, noWait := range []bool{false, true} {
		session := order.NewSession(false)
		t.Cleanup(session.Stop)
		p := newProgram(t, session)
		free := p.rt.Free
		if noWait {
			free = p.rt.FreeNoWait
		}
		waited, pending := p.memory(256), p.memory(256)
		p.fill(p.a, waited.Start, 256)
		p.synchronize()
		require.NoError(t, free(p.me, waited.Start))
		require.Empty(t, session.Take(true))
		p.fill(p.a, pending.Start, 256)
		require.NoError(t, free(p.me, pending.Start))
		found := session.Take(true)
		p.synchronize()
		if !noWait {
			require.Empty(t, found)
			continue
		}
		require.Len(t, found, 1)
		require.Equal(t, order.Freed, found[0].Reason.Memory)
		require.Equal(t, order.SynchronizedEarlier, found[0].Reason.Why)
		require.Equal(t, pending.Start, found[0].Block.Start)
		require.Equal(t, hal.DeviceMemory, found[0].Kind)
		again := p.memory(256)
		p.fill(p.b, again.Start, 256)
		p.synchronize()
		require.Empty(t, session.Take(true), "what has the memory next is reported apart from it")
	}
}

func TestV1_a_wait_for_a_context_orders_the_work_on_its_streams(t *testing.T) {
	session := order.NewSession(false)
	t.Cleanup(session.Stop)
	p := newProgram(t, session)
	d, err := p.rt.Device(0)
	require.NoError(t, err)
	c, err := d.NewContext(p.me)
	require.NoError(t, err)
	inside, err := c.NewStream(p.me, hal.StreamOptions{NonBlocking: true})
	require.NoError(t, err)
	closed, err := c.NewStream(p.me, hal.StreamOptions{NonBlocking: true})
	require.NoError(t, err)
	blocks := []*hal.Block{p.memory(256), p.memory(256), p.memory(256)}
	for i, s := range []*hal.Stream{inside, closed, p.a} {
		p.fill(s, blocks[i].Start, 256)
	}
	require.NoError(t, closed.Close(p.me))
	point, err := c.Point(p.me)
	require.NoError(t, err)
	require.True(t, point.Wait(driver.Forever))
	for _, b := range blocks {
		require.NoError(t, p.rt.FreeNoWait(p.me, b.Start))
	}
	found := session.Take(true)
	p.synchronize()
	require.Len(t, found, 1)
	require.Equal(t, blocks[2].Start, found[0].Block.Start, "the stream of another context was not waited for")
}
