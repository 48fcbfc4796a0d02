package stall_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
	"halstream/hal/stall"
)

func at(stream uint64) driver.Fence { return driver.Fence{Stream: stream} }

func thread(number uint64) stall.Party { return stall.Party{Thread: number} }

func stream(index uint64) stall.Party { return stall.Party{Stream: index} }

// Thread 1 waits for stream 1 in all of them.
func TestGraph_findsWhoCanNeverGoOn(t *testing.T) {
	main := []stall.Blocked{{Thread: 1, On: []driver.Fence{at(1)}}}
	function := driver.Busy{At: at(1), Need: driver.NeedFunction, Number: 5}
	runs := []stall.Running{{Thread: 2, Token: 5}}
	for name, c := range map[string]struct {
		graph stall.Graph
		stuck []stall.Party
	}{
		"a gate that nobody can open": {
			stall.Graph{Streams: []driver.Busy{{At: at(1), Need: driver.NeedGate}}},
			[]stall.Party{thread(1), stream(1)},
		},
		"a gate that somebody else may open": {
			stall.Graph{Streams: []driver.Busy{{At: at(1), Need: driver.NeedGate}}, Others: true}, nil,
		},
		"a value in memory that somebody else may write": {
			stall.Graph{Streams: []driver.Busy{{At: at(1), Need: driver.NeedValue}}, Others: true}, nil,
		},
		"a stream that waits for another one that waits for it": {
			stall.Graph{Others: true, Streams: []driver.Busy{
				{At: at(1), Need: driver.NeedStream, On: []driver.Fence{at(2)}},
				{At: at(2), Need: driver.NeedOrder, On: []driver.Fence{at(1)}},
			}},
			[]stall.Party{thread(1), stream(1), stream(2)},
		},
		"a stream behind one that moves": {
			stall.Graph{Others: true, Streams: []driver.Busy{
				{At: at(1), Need: driver.NeedStream, On: []driver.Fence{at(2)}}, {At: at(2)},
			}}, nil,
		},
		"a function that waits for the thread that waits for it": {
			stall.Graph{Others: true, Streams: []driver.Busy{function}, Running: runs,
				Held: []stall.Held{{Thread: 2, By: 1}}},
			[]stall.Party{thread(1), stream(1), thread(2)},
		},
		"a function that waits for what others may give it": {
			stall.Graph{Others: true, Streams: []driver.Busy{function}, Running: runs,
				Held: []stall.Held{{Thread: 2}}}, nil,
		},
		"a function that runs": {
			stall.Graph{Others: true, Streams: []driver.Busy{function}, Running: runs}, nil,
		},
		"a function with the number of a report": {
			stall.Graph{Others: true, Streams: []driver.Busy{function}, Held: []stall.Held{{Thread: 2, By: 1}},
				Running: []stall.Running{{Thread: 2, Token: 5, Report: true}}}, nil,
		},
		"a function that no thread has taken": {
			stall.Graph{Others: true, Streams: []driver.Busy{function}}, nil,
		},
		"a stream whose work has ended meanwhile": {stall.Graph{Others: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.graph.Blocked = main
			require.ElementsMatch(t, c.stuck, c.graph.Stuck(1))
		})
	}
}

func TestGraph_countsAThreadBetweenCircleAndStart(t *testing.T) {
	g := stall.Graph{Others: true, Blocked: []stall.Blocked{{Thread: 1, On: []driver.Fence{at(1), at(4)}}},
		Streams: []driver.Busy{
			{At: at(1), Need: driver.NeedStream, On: []driver.Fence{at(2)}},
			{At: at(2), Need: driver.NeedStream, On: []driver.Fence{at(3)}},
			{At: at(3), Need: driver.NeedStream, On: []driver.Fence{at(2)}},
			{At: at(4)},
		}}
	require.Equal(t, []stall.Party{thread(1), stream(1), stream(2), stream(3)}, g.Stuck(1))
	require.Empty(t, g.Stuck(9), "who does not wait")
}

func TestGraph_whereNobodyCanActEverybodyWhoWaitsIsStuck(t *testing.T) {
	g := stall.Graph{
		Blocked: []stall.Blocked{{Thread: 1, Report: true}, {Thread: 2, On: []driver.Fence{at(0)}}},
		Streams: []driver.Busy{{At: at(0), Need: driver.NeedReport}},
		Held:    []stall.Held{{Thread: 3}},
	}
	require.ElementsMatch(t, []stall.Party{thread(1), thread(2), thread(3), stream(0)}, g.Stuck(1))
}
