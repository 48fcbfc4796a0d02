package host_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/haltest"
	"halstream/hal/host"
)

// node is an operation in the model: it comes after its predecessors, and never
// if it is a closed gate. What a wait finds done it need not enqueue, so the
// barrier that a wait on the default stream would be is only possible.
type node struct {
	before   []*node
	possible []*node
	gate     driver.Gate
	token    uint64 // of a function, 0 for other operations
}

// held reports whether n comes after a closed gate for certain, or with
// perhaps, whether it possibly does.
func (n *node) held(seen map[*node]bool, perhaps bool) bool {
	if n.gate != nil && !n.gate.Opened() {
		return true
	}
	if done, ok := seen[n]; ok {
		return done
	}
	seen[n] = false
	before := n.before
	if perhaps {
		before = append(before[:len(before):len(before)], n.possible...)
	}
	for _, p := range before {
		if p.held(seen, perhaps) {
			seen[n] = true
		}
	}
	return seen[n]
}

// functions adds the functions that come before n.
func (n *node) functions(into map[uint64]bool, seen map[*node]bool) {
	if seen[n] {
		return
	}
	seen[n] = true
	for _, p := range n.before {
		if p.token != 0 {
			into[p.token] = true
		}
		p.functions(into, seen)
	}
}

// program runs random operations on the host device and, in the model, draws
// what must come before what by the rules of the contract alone.
type program struct {
	t       *rapid.T
	me      *hal.Thread
	streams []*hal.Stream // the first one is the legacy default stream
	ordered []bool
	last    []*node
	events  []*hal.Event
	records []*node
	gates   []*node
	calls   []*node
	rt      *hal.Runtime
	mu      sync.Mutex
	ran     []uint64
	arrived chan struct{}
}

func (p *program) enqueue(i int, n *node) *node {
	n.before = append(n.before, p.legacy(i)...)
	return p.follow(i, n)
}

// wait enqueues an operation that is left out if what it waits for is done.
func (p *program) wait(i int, n *node) *node {
	n.possible = p.legacy(i)
	return p.follow(i, n)
}

func (p *program) follow(i int, n *node) *node {
	if p.last[i] != nil {
		n.before = append(n.before, p.last[i])
	}
	p.last[i] = n
	return n
}

// legacy returns what an operation on stream i waits for by the rule of the
// legacy default stream (S5).
func (p *program) legacy(i int) (before []*node) {
	for j := range p.streams {
		if j != i && p.ordered[j] && p.ordered[i] && (i == 0 || j == 0) && p.last[j] != nil {
			before = append(before, p.last[j])
		}
	}
	return before
}

func (p *program) step() {
	i := rapid.IntRange(0, len(p.streams)-1).Draw(p.t, "stream")
	s := p.streams[i]
	e := rapid.IntRange(0, len(p.events)-1).Draw(p.t, "event")
	switch rapid.IntRange(0, 7).Draw(p.t, "operation") {
	case 0, 1:
		require.NoError(p.t, s.Record(p.me, p.events[e]))
		p.records[e] = p.enqueue(i, &node{})
	case 2, 3:
		require.NoError(p.t, s.Wait(p.me, p.events[e]))
		n := &node{}
		if p.records[e] != nil {
			n.before = append(n.before, p.records[e])
		}
		p.wait(i, n)
	case 4:
		j := rapid.IntRange(0, len(p.streams)-1).Draw(p.t, "other")
		n := &node{}
		if j != i {
			if p.last[j] != nil {
				n.before = append(n.before, p.last[j])
			}
			if before := p.legacy(j); len(before) > 0 { // the point of a record, which comes after other streams
				n.before = append(n.before, p.enqueue(j, &node{}))
			}
		}
		require.NoError(p.t, s.WaitStream(p.me, p.streams[j]))
		p.wait(i, n)
	case 5:
		g, err := s.Gate(p.me)
		require.NoError(p.t, err)
		p.gates = append(p.gates, p.enqueue(i, &node{gate: g}))
	default:
		token := uint64(len(p.calls) + 1)
		require.NoError(p.t, s.HostFunc(p.me, token))
		p.calls = append(p.calls, p.enqueue(i, &node{token: token}))
	}
}

// settle waits until every function that no closed gate holds has run, and
// checks that no other one has.
func (p *program) settle() {
	must, may := map[*node]bool{}, map[*node]bool{}
	free := map[uint64]bool{}
	want := 0
	for _, c := range p.calls {
		free[c.token] = !c.held(must, false)
		if !c.held(may, true) {
			want++
		}
	}
	deadline := time.After(haltest.Limit)
	for {
		p.mu.Lock()
		n := len(p.ran)
		p.mu.Unlock()
		if n >= want {
			break
		}
		select {
		case <-p.arrived:
		case <-deadline:
			p.t.Fatalf("%d of %d functions ran: %s", n, want, p.streams[0].Device().Describe())
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, token := range p.ran {
		require.True(p.t, free[token], "function %d ran although a closed gate holds it", token)
	}
}

// serve runs functions: each only notes its number.
func (p *program) serve(group *sync.WaitGroup) {
	for range 2 {
		group.Add(1)
		p.rt.Funcs.Start()
		go func() {
			defer group.Done()
			t := hal.NewThread()
			for {
				task, _ := p.rt.Funcs.Next(t, driver.Forever)
				if task.End {
					return
				}
				p.mu.Lock()
				p.ran = append(p.ran, task.Token)
				p.mu.Unlock()
				p.rt.Funcs.Done(t, false, nil)
				select {
				case p.arrived <- struct{}{}:
				default:
				}
			}
		}()
	}
}

// TestModel runs random programs of records, waits, gates and functions over
// ordered, non-blocking and default streams, and compares what ran, and in
// which order, with what the model allows.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drv, err := host.Open(host.Options{Devices: 1})
		require.NoError(t, err)
		rt, err := hal.Open(drv, 2)
		require.NoError(t, err)
		p := &program{t: t, rt: rt, me: hal.NewThread(), arrived: make(chan struct{}, 1)}
		var group sync.WaitGroup
		p.serve(&group)
		defer group.Wait()
		defer rt.Close()
		d, err := rt.Device(0)
		require.NoError(t, err)
		p.streams = append(p.streams, d.DefaultStream())
		p.ordered = []bool{true}
		for _, nonBlocking := range []bool{false, false, true, true} {
			s, err := d.NewStream(p.me, hal.StreamOptions{NonBlocking: nonBlocking})
			require.NoError(t, err)
			p.streams = append(p.streams, s)
			p.ordered = append(p.ordered, !nonBlocking)
		}
		p.last = make([]*node, len(p.streams))
		for range 3 {
			e, err := rt.NewEvent(p.me, d, hal.EventOptions{})
			require.NoError(t, err)
			p.events = append(p.events, e)
		}
		p.records = make([]*node, len(p.events))
		for range rapid.IntRange(1, 60).Draw(t, "length") {
			p.step()
		}
		p.settle()
		for len(p.gates) > 0 {
			i := rapid.IntRange(0, len(p.gates)-1).Draw(t, "gate")
			p.gates[i].gate.Open()
			p.gates = append(p.gates[:i], p.gates[i+1:]...)
			p.settle()
		}
		place := map[uint64]int{}
		for i, token := range p.ran {
			place[token] = i
		}
		require.Len(t, place, len(p.calls), "each function runs once")
		for _, c := range p.calls {
			before := map[uint64]bool{}
			c.functions(before, map[*node]bool{})
			for b := range before {
				require.Less(t, place[b], place[c.token], "function %d must come before %d", b, c.token)
			}
		}
	})
}
