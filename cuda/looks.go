package cuda

import (
	"slices"

	"halstream/hal/driver"
)

// beforeOf returns what looks at the source of a copy before it in a launch, nil if nobody wants that.
func beforeOf(l driver.GraphLaunch, node int) func() {
	if runs := l.NodeRuns(); runs != nil && runs[node].Before != nil {
		return runs[node].Before
	}
	return nil
}

// lookAtSources enqueues, in front of a launch of the driver's graph, looks at the pinned sources of its
// copies: between the nodes of such a graph there is none. A graph that may write pinned memory itself
// gets no look, as that could change a source before its copy.
func (p *plan) lookAtSources(s *Stream, l driver.GraphLaunch) error {
	if l.NodeRuns() == nil {
		return nil
	}
	var looks []func()
	for i := range p.nodes {
		if before := beforeOf(l, i); before != nil && p.nodes[i].Kind == driver.CopyNode {
			looks = append(looks, before)
		}
	}
	if len(looks) == 0 || slices.ContainsFunc(p.nodes, mayWritePinned) || s.Captured() {
		return nil
	}
	return s.task("launch graph", "a look at the sources of a graph", func() {
		for _, look := range looks {
			look()
		}
	}, func() {})
}

func mayWritePinned(n driver.GraphNode) bool {
	switch n.Kind {
	case driver.CopyNode:
		return n.Copy.To != driver.OnDevice
	case driver.FillNode:
		return n.Fill.On != driver.OnDevice
	case driver.EmptyNode, driver.DelayNode:
		return false
	}
	return true
}
