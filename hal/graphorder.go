package hal

// The order of the nodes of a graph.

// edges returns how many edges there are. The caller holds mu.
func (g *Graph) edges() (count int) {
	for _, n := range g.nodes {
		count += len(n.after)
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
				for _, dep := range n.after {
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
		for _, dep := range n.after {
			if dep.index > i {
				return false
			}
		}
	}
	return true
}
