package hal

import (
	"fmt"
	"strings"

	"halstream/hal/driver"
)

// DOT returns the graph in the language of graphviz. Nodes have their kind, their name and where
// the program made them; graphs that are nodes, and bodies, are drawn in frames. function returns
// the name of a function by its token; nil if that is not known. With details nodes also have where
// they run and what they read and write.
//
// Contract: G5.
func (g *Graph) DOT(function func(token uint64) string, details bool) string {
	var b strings.Builder
	b.WriteString("digraph halstream {\n  compound=true;\n  node [shape=box];\n")
	g.dot(&b, "  ", "n", function, details)
	b.WriteString("}\n")
	return b.String()
}

// dot writes the nodes and edges; the names of nodes begin with prefix.
func (g *Graph) dot(b *strings.Builder, indent, prefix string, function func(uint64) string, details bool) {
	nodes := g.Nodes()
	for _, n := range nodes {
		label, place := n.kind.String(), g.rt.at(n.site)
		if details {
			place += n.details()
		}
		if name := n.label(function); name != "" {
			label += " " + name
		}
		graphs := n.inner()
		if graphs == nil {
			fmt.Fprintf(b, "%s%s%d [label=%q];\n", indent, prefix, n.index, label+place)
			continue
		}
		if len(graphs) == 1 {
			label += " of " + countNodes(len(graphs[0].Nodes()))
		} else {
			label += fmt.Sprintf(" of %d graphs", len(graphs))
		}
		fmt.Fprintf(b, "%s%s%d [label=%q, shape=ellipse];\n", indent, prefix, n.index, label+place)
		for k, inner := range graphs {
			name := fmt.Sprintf("%s%d", prefix, n.index)
			if len(graphs) > 1 {
				name, label = fmt.Sprintf("%s_case%d", name, k), n.caseName(k, len(inner.Nodes()))
			}
			fmt.Fprintf(b, "%ssubgraph cluster_%s {\n%s  label=%q;\n", indent, name, indent, label)
			inner.dot(b, indent+"  ", name+"_", function, details)
			fmt.Fprintf(b, "%s}\n", indent)
			for _, first := range inner.Nodes() {
				if len(first.After()) == 0 {
					fmt.Fprintf(b, "%s%s%d -> %s_%d [style=dashed];\n", indent, prefix, n.index, name, first.index)
				}
			}
		}
	}
	for _, n := range nodes {
		for _, dep := range n.After() {
			fmt.Fprintf(b, "%s%s%d -> %s%d;\n", indent, prefix, dep.index, prefix, n.index)
		}
	}
}

// caseName says when a node with several bodies runs the k-th one, which has so many nodes.
func (n *Node) caseName(k, nodes int) string {
	if n.kind == driver.SwitchNode {
		return fmt.Sprintf("case %d of %s", k, countNodes(nodes))
	}
	return [...]string{"then", "else"}[k] + " of " + countNodes(nodes)
}

// countNodes says how many nodes there are.
func countNodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// details returns lines that say where a node runs and what it works on.
func (n *Node) details() string {
	text := fmt.Sprintf("\ndevice %d", n.device)
	if n.stream != nil {
		text += fmt.Sprintf(", captured on stream %d", n.stream.index)
	}
	for _, r := range n.reads {
		text += fmt.Sprintf("\nreads %d bytes at %#x", r.Size, r.Start)
	}
	for _, r := range n.writes {
		text += fmt.Sprintf("\nwrites %d bytes at %#x", r.Size, r.Start)
	}
	return text
}

// label returns the name of a node, "" where it has none.
func (n *Node) label(function func(uint64) string) string {
	if n.name == "" && n.token != 0 && function != nil {
		return function(n.token)
	}
	return n.name
}
