package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/order"
)

// sites are the call sites of the programs below.
const (
	setup uint32 = iota + 1
	first
	second
	later
)

// proof is a program with call sites whose finding is to be fixed.
type proof struct {
	*program
	session *order.Session
	block   *hal.Block
	site    uint32
}

func newProof(t *testing.T) *proof {
	p := &proof{session: order.NewSession(false), site: setup}
	t.Cleanup(p.session.Stop)
	p.program = newProgram(t, p.session)
	p.rt.SetSites(func() uint32 { return p.site })
	p.block = p.memory(256)
	return p
}

// write fills the block on a stream at a call site.
func (p *proof) write(site uint32, s *hal.Stream) {
	p.site = site
	p.fill(s, p.block.Start, 256)
	p.site = later
}

// fix returns a fix of the first finding in front of the second write.
func (p *proof) fix(action order.Action) order.Fix {
	return order.Fix{Action: action, First: name(p.a), Second: name(p.b), Sites: []uint32{second}}
}

func name(s *hal.Stream) [2]uint64 { return [2]uint64{uint64(s.Device().Ordinal()), s.Index()} }

// verdict takes the one finding and returns what a fix of it would do.
func (p *proof) verdict(fix order.Fix) order.Verdict {
	p.t.Helper()
	p.session.Take(false)
	return p.session.Prove([]order.Fix{fix})[0]
}

func TestV10_a_wait_between_the_accesses_silences(t *testing.T) {
	p := newProof(t)
	p.write(first, p.a)
	p.write(second, p.b)
	p.synchronize()
	for _, action := range []order.Action{order.WaitForStream, order.SynchronizeStream, order.SynchronizeDevice} {
		require.Equal(t, order.Silent, p.verdict(p.fix(action)), action)
	}
	behind := p.fix(order.WaitForStream)
	behind.Sites, behind.After = []uint32{first}, true
	require.Equal(t, order.Silent, p.verdict(behind))
}

func TestV10_a_wait_that_does_not_order_them_is_refused(t *testing.T) {
	p := newProof(t)
	other := p.stream()
	p.fill(other, p.memory(16).Start, 16)
	p.write(first, p.a)
	p.write(second, p.b)
	p.synchronize()
	elsewhere := p.fix(order.WaitForStream)
	elsewhere.First = name(other)
	require.Equal(t, order.Reported, p.verdict(elsewhere))
	early := p.fix(order.WaitForStream)
	early.Sites = []uint32{first}
	require.Equal(t, order.Reported, p.verdict(early))
	nowhere := p.fix(order.WaitForStream)
	nowhere.Sites = nil
	require.Equal(t, order.Reported, p.verdict(nowhere))
}

func TestV10_a_statement_of_a_loop_waits_each_time(t *testing.T) {
	p := newProof(t)
	for range 3 {
		p.write(first, p.a)
		p.write(second, p.b)
		require.NoError(t, p.a.WaitStream(p.me, p.b))
	}
	p.synchronize()
	require.Equal(t, order.Silent, p.verdict(p.fix(order.WaitForStream)))
}

func TestV10_a_change_does_not_go_between_the_calls_of_one_statement(t *testing.T) {
	p := newProof(t)
	for range 2 { // of which each turn is an execution of its own
		p.write(first, p.a)
		p.write(second, p.b)
		p.synchronize()
	}
	one := p.fix(order.SynchronizeDevice)
	one.Sites = []uint32{first, second}
	require.Equal(t, order.Reported, p.verdict(one))
}

func TestV10_a_loop_in_which_each_comes_before_the_other_needs_two_waits(t *testing.T) {
	p := newProof(t)
	for range 3 {
		p.write(first, p.a)
		p.write(second, p.b)
	}
	p.synchronize()
	one := p.fix(order.WaitForStream)
	require.Equal(t, order.Reversed, p.verdict(one))
	two := order.Fix{Action: order.WaitForStream, First: one.Second, Second: one.First, Sites: []uint32{first}}
	require.Equal(t, []order.Verdict{order.Silent, order.Silent}, p.session.Prove([]order.Fix{one, two}))
}

func TestV10_an_event_is_waited_for_at_its_latest_record(t *testing.T) {
	for _, late := range []bool{false, true} {
		p := newProof(t)
		e, err := p.rt.NewEvent(p.me, nil, hal.EventOptions{})
		require.NoError(t, err)
		if late {
			require.NoError(t, p.a.Record(p.me, e))
		}
		p.write(first, p.a)
		if !late {
			require.NoError(t, p.a.Record(p.me, e))
		}
		p.write(second, p.b)
		p.synchronize()
		want := order.Silent
		if late {
			want = order.Reported
		}
		for _, action := range []order.Action{order.WaitForEvent, order.SynchronizeEvent} {
			fix := p.fix(action)
			fix.Event = e.ID()
			require.Equal(t, want, p.verdict(fix), action)
		}
	}
}

func TestV10_a_wait_of_the_host_behind_the_opening_of_a_gate_is_accepted(t *testing.T) {
	p := newProof(t)
	gate, err := p.a.Gate(p.me)
	require.NoError(t, err)
	gate.Open()
	done, err := p.a.Synchronize(p.me, driver.Forever)
	require.NoError(t, err)
	require.True(t, done)
	p.write(first, p.a)
	p.write(second, p.b)
	p.synchronize()
	require.Equal(t, order.Silent, p.verdict(p.fix(order.SynchronizeStream)))
}

// wait waits for one stream.
func (p *proof) wait(s *hal.Stream) {
	p.t.Helper()
	done, err := s.Synchronize(p.me, driver.Forever)
	require.NoError(p.t, err)
	require.True(p.t, done)
}

func TestV10_a_wait_of_the_host_for_what_it_allows_later_is_refused(t *testing.T) {
	for name, block := range map[string]func(p *proof) (allow func()){
		"gate": func(p *proof) func() {
			gate, err := p.a.Gate(p.me)
			require.NoError(t, err)
			return gate.Open
		},
		"value of a stream": func(p *proof) func() {
			value, other := p.memory(8), p.stream()
			require.NoError(t, p.a.WaitValue(p.me, value.Start, 1, driver.Equal))
			return func() { require.NoError(t, other.WriteValue(p.me, value.Start, 1)) }
		},
		"future record": func(p *proof) func() {
			other := p.stream()
			e, err := p.rt.NewEvent(p.me, nil, hal.EventOptions{Kind: hal.Future})
			require.NoError(t, err)
			require.NoError(t, p.a.Wait(p.me, e))
			return func() { require.NoError(t, other.Record(p.me, e)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProof(t)
			allow := block(p)
			p.write(first, p.a)
			p.write(second, p.b)
			allow()
			p.synchronize()
			p.session.Take(true)
			require.Equal(t, order.Stuck, p.session.Prove([]order.Fix{p.fix(order.SynchronizeStream)})[0])
			require.Equal(t, order.Silent, p.session.Prove([]order.Fix{p.fix(order.WaitForStream)})[0])
		})
	}
}

func TestV10_a_wait_of_a_stream_that_the_host_waits_for_in_front_of_a_gate_is_refused(t *testing.T) {
	p := newProof(t)
	gate, err := p.a.Gate(p.me)
	require.NoError(t, err)
	p.write(first, p.a)
	p.write(second, p.b)
	p.wait(p.b)
	gate.Open()
	p.synchronize()
	require.Equal(t, order.Stuck, p.verdict(p.fix(order.WaitForStream)))
}

func TestV10_all_fixes_of_a_run_are_tried_together(t *testing.T) {
	p := newProof(t)
	p.write(first, p.a)
	p.write(second, p.b)
	third := p.stream()
	p.write(later+1, third)
	p.synchronize()
	require.Len(t, p.session.Take(true), 3, "each pair")
	one := p.fix(order.WaitForStream)
	two := order.Fix{Action: order.WaitForStream, First: name(p.b), Second: name(third), Sites: []uint32{later + 1}}
	two.Finding = 1 // of the first and the third stream
	require.Equal(t, []order.Verdict{order.Reported}, p.session.Prove([]order.Fix{two}))
	require.Equal(t, []order.Verdict{order.Silent, order.Silent}, p.session.Prove([]order.Fix{one, two}))
	require.Contains(t, p.session.Sites(), second)
}

func TestV10_a_run_that_is_too_long_is_not_tried(t *testing.T) {
	p := newProof(t)
	p.write(first, p.a)
	p.write(second, p.b)
	require.Equal(t, order.Silent, p.verdict(p.fix(order.WaitForStream)))
	for range 1 << 17 {
		require.NoError(t, p.a.Nop(p.me))
	}
	p.synchronize()
	require.Equal(t, order.Unproven, p.verdict(p.fix(order.WaitForStream)))
	require.Empty(t, p.session.Sites())
}
