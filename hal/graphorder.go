package hal

import "slices"

// The order of the nodes of a graph.

// view returns the graph as it is now, with the same nodes: what they do never changes, and edges that are added later
// are not those of the view. It keeps what the graph keeps.
func (g *Graph) view() *Graph {
	g.mu.Lock()
	defer g.mu.Unlock()
	nodes := slices.Clip(g.made())
	v := g.rt.newGraph()
	v.viewed, v.nodes, v.before = g, nodes, make([][]*Node, len(nodes))
	for i, n := range nodes {
		v.before[i] = n.after
	}
	v.memory = memoryNodes{slices.Clip(g.memory.allocates), slices.Clip(g.memory.frees)}
	v.keep.addKeep(g.keep)
	return v
}

// afterOf returns what a node of the graph comes after. The caller holds mu, unless the graph is a view.
func (g *Graph) afterOf(n *Node) []*Node {
	if g.viewed != nil {
		return g.before[n.index]
	}
	return n.after
}

// edges returns how many edges there are. The caller holds mu.
func (g *Graph) edges() (count int) {
	for _, n := range g.nodes {
		count += len(g.afterOf(n))
	}
	return count
}

// sorted returns the nodes so that each comes after those that it depends on. AddEdge
// lets no cycle in. The caller holds mu.
func (g *Graph) sorted() []*Node {
	if g.inOrder() {
		return g.nodes
	}
	done := make([]bool, len(g.nodes))
	list := make([]*Node, 0, len(g.nodes))
	var todo []*Node
	for _, n := range g.nodes {
		todo = append(todo[:0], n)
		for len(todo) > 0 {
			n := todo[len(todo)-1]
			pending := len(todo)
			if !done[n.index] {
				for _, dep := range g.afterOf(n) {
					if !done[dep.index] {
						todo = append(todo, dep)
					}
				}
			}
			if len(todo) > pending {
				continue
			}
			todo = todo[:pending-1]
			if !done[n.index] {
				done[n.index] = true
				list = append(list, n)
			}
		}
	}
	return list
}

// inOrder reports whether each node comes after nodes that were added before it only, as it is so in captures.
// The caller holds mu.
func (g *Graph) inOrder() bool {
	for i, n := range g.nodes {
		for _, dep := range g.afterOf(n) {
			if dep.index > i {
				return false
			}
		}
	}
	return true
}
