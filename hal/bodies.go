package hal

// bodyNode is a node in a body of a node with a condition.
type bodyNode struct {
	node  *Node
	owner int
}

// All returns how many nodes there are with those of bodies, which a launch may run once, often or not
// at all. Their numbers begin with Len: those of the bodies of one node, body by body, follow each other,
// each with what its own bodies have behind it.
func (l *NodeList) All() int { return len(l.nodes) + len(l.inner) }

// Owner returns the number of the node with a condition in one of whose bodies the i-th node is, the
// innermost one; -1 if there is none.
func (l *NodeList) Owner(i int) int {
	if i < len(l.nodes) {
		return -1
	}
	return l.inner[i-len(l.nodes)].owner
}

// addBodies lists the nodes of the bodies of nodes, the first of which has the number base.
func (l *NodeList) addBodies(nodes []*Node, base int) {
	for i, n := range nodes {
		for _, body := range n.bodies {
			inner, first := body.flat(nil), l.All()
			for _, m := range inner {
				l.inner = append(l.inner, bodyNode{m, base + i})
			}
			l.addBodies(inner, first)
		}
	}
}

// flat appends the nodes of a graph, which nobody changes, in the order in which an executable has them.
func (g *Graph) flat(list []*Node) []*Node {
	for _, n := range g.sorted() {
		if n.child != nil {
			list = n.child.flat(append(list, n))
		}
		list = append(list, n)
	}
	return list
}
