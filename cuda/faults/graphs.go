package main

import "halstream/hal"

// graphs has graphs that the driver launches with one call, and ones with functions between their
// nodes, which are enqueued node by node.
func (p *program) graphs(d *hal.Device, a, b *hal.Stream, at *hal.Block) {
	var captured []*hal.Graph
	word, err := d.Runtime().AllocHost(p.me, 4)
	if !p.failed(err) {
		defer func() { p.failed(word.Release(p.me)) }()
	}
	for _, functions := range []bool{false, true} {
		if g := p.captured(a, b, at, functions); g != nil {
			if word != nil {
				p.addLoop(g, d, at, word)
			}
			captured = append(captured, g)
		}
	}
	for _, g := range captured {
		if x, err := g.Instantiate(p.me); !p.failed(err) {
			p.failed(x.Launch(p.me, a))
			p.failed(x.Update(p.me, g))
			p.failed(x.Launch(p.me, b))
			p.wait("graph", func() (bool, error) { return b.Synchronize(p.me, limit) })
			p.failed(x.Close(p.me))
		}
	}
	for _, g := range captured {
		p.failed(g.Close(p.me))
	}
	p.wait("graphs", func() (bool, error) { return d.Synchronize(p.me, limit) })
}

// captured is a graph of two branches.
func (p *program) captured(a, b *hal.Stream, at *hal.Block, functions bool) *hal.Graph {
	if p.failed(a.BeginCapture(p.me, hal.ThreadLocalMode)) {
		return nil
	}
	p.failed(a.Fill(p.me, at.Start, 1, 4, 16))
	if !p.failed(b.WaitStream(p.me, a)) {
		p.failed(b.Fill(p.me, at.Start+512, 2, 1, 64))
		p.failed(b.Delay(p.me, 1000))
		if functions {
			p.failed(b.Native(p.me, nothing(), 0, hal.Accesses{}))
		}
	}
	_, err := a.Copy(p.me, hal.CopySpec{Dst: at.Start + 1024, Src: at.Start, Width: 64})
	p.failed(err)
	p.failed(a.WaitStream(p.me, b))
	p.failed(a.Nop(p.me))
	g, err := a.EndCapture(p.me)
	if p.failed(err) {
		return nil
	}
	return g
}

// addLoop adds a node with a condition, whose body runs once.
func (p *program) addLoop(g *hal.Graph, d *hal.Device, at, word *hal.Block) {
	body, err := d.Runtime().NewGraph(p.me)
	if p.failed(err) {
		return
	}
	defer func() { p.failed(body.Close(p.me)) }()
	for _, to := range []uint64{at.Start, word.Start} {
		_, err = body.Add(p.me, d, nil, func(s *hal.Stream) error { return s.Fill(p.me, to, 0, 4, 1) })
		p.failed(err)
	}
	_, err = g.AddWhile(p.me, nil, hal.GraphCondition{Addr: word.Start, Initial: 1, Resets: true}, body)
	p.failed(err)
}
