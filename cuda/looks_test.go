package cuda_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/cuda"
	"halstream/hal/driver"
)

// observed is a launch of which each node has a look at its source.
type observed struct {
	completing
	runs []driver.NodeRun
}

func (l *observed) NodeRuns() []driver.NodeRun { return l.runs }

// The source of a copy in a graph is looked at when the stream gets there, not at the call, in a graph of the
// driver as well as in one with branches.
func TestV44_the_pinned_source_of_a_copy_in_a_graph_is_looked_at(t *testing.T) {
	for _, name := range []string{"whole", "branches", "pinned target"} {
		t.Run(name, func(t *testing.T) {
			drv, err := cuda.Open(fake(t).Path)
			require.NoError(t, err)
			t.Cleanup(drv.Close)
			dev, err := drv.Open(0)
			require.NoError(t, err)
			s := newStream(t, dev, 1)
			to, err := dev.Alloc(8)
			require.NoError(t, err)
			from, err := drv.AllocHost(8)
			require.NoError(t, err)
			n := copyNode(to, from)
			n.Copy.From = driver.Pinned
			nodes := []driver.GraphNode{n}
			switch name {
			case "branches":
				nodes = append(nodes, driver.GraphNode{Kind: driver.CallNode, GraphWork: &driver.GraphWork{}})
			case "pinned target":
				back := copyNode(from, to, 0)
				back.Copy.To = driver.Pinned
				nodes = append(nodes, back)
			}
			x, err := any(drv).(driver.GraphDriver).Instantiate(nodes)
			require.NoError(t, err)
			t.Cleanup(x.Close)
			var looks atomic.Int64
			l := observed{runs: make([]driver.NodeRun, len(nodes))}
			l.runs[0].Before = func() { looks.Add(1) }
			gate, err := s.Gate(1, 0)
			require.NoError(t, err)
			t.Cleanup(gate.Open)
			require.NoError(t, x.Launch(s, &l))
			require.Zero(t, looks.Load())
			gate.Open()
			require.True(t, s.Point().Wait(int64(10*time.Second)))
			want := int64(1)
			if name == "pinned target" {
				want = 0 // the graph changes the source itself
			}
			require.Equal(t, want, looks.Load())
		})
	}
}
