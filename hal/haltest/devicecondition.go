package haltest

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// conditionWords allocates words of 4 bytes in the memory of device 0.
func conditionWords(k *Kit, values ...uint32) *hal.Block {
	k.T.Helper()
	b := k.Alloc(0, int64(4*len(values)))
	setWords(k, b, values...)
	return b
}

func setWords(k *Kit, b *hal.Block, values ...uint32) {
	k.T.Helper()
	var bytes []byte
	for _, value := range values {
		bytes = binary.LittleEndian.AppendUint32(bytes, value)
	}
	k.Write(b, bytes)
}

// readWords returns the words of a block.
func readWords(k *Kit, b *hal.Block) (values []uint32) {
	k.T.Helper()
	for bytes := k.Read(b); len(bytes) > 0; bytes = bytes[4:] {
		values = append(values, binary.LittleEndian.Uint32(bytes))
	}
	return values
}

// capturedCondition returns what a function enqueues on a stream as a graph.
func capturedCondition(k *Kit, enqueue func(*hal.Stream)) *hal.Graph {
	k.T.Helper()
	s := k.Stream(ordinary)
	k.Capture(s)
	enqueue(s)
	return k.EndCapture(s)
}

// shift moves the words of a block down by one; the last one stays.
func shift(k *Kit, s *hal.Stream, b, spare *hal.Block) {
	k.T.Helper()
	k.Copy(s, spare.Start, b.Start+4, b.Size-4)
	k.Copy(s, b.Start, spare.Start, b.Size-4)
}

// fillWord is the graph of a fill of one word.
func fillWord(k *Kit, b *hal.Block, at int, value uint32) *hal.Graph {
	k.T.Helper()
	return capturedCondition(k, func(s *hal.Stream) { require.NoError(k, s.Fill(k.Me, b.Start+uint64(4*at), value, 4, 1)) })
}

// deviceConditionCases are of bodies without functions of the host, which any device can run by itself.
var deviceConditionCases = []testCase{
	{"G13_a_body_of_copies_runs_again_while_the_condition_is_not_0", FourQueues | Graphs | Memory | Conditions, func(k *Kit) {
		c, _ := newCondition(k, 1)
		inner, _ := newCondition(k, 1)
		left, turns, spare, noted := conditionWords(k, 1, 1, 0), conditionWords(k, 0, 1, 2, 3, 4, 5, 6), conditionWords(k, make([]uint32, 8)...), conditionWords(k, 0, 0)
		body := capturedCondition(k, func(s *hal.Stream) {
			shift(k, s, turns, spare)
			shift(k, s, left, spare)
			k.Copy(s, c.Addr, left.Start, 4)
		})
		once := capturedCondition(k, func(s *hal.Stream) {
			k.Copy(s, noted.Start, turns.Start, 4) // the number of its turn
			k.Copy(s, noted.Start+4, left.Start+4, 4)
			require.NoError(k, s.Fill(k.Me, inner.Addr, 0, 4, 1))
		})
		_, err := body.AddWhile(k.Me, body.Nodes()[3:4], inner, once)
		require.NoError(k, err)
		g := newGraph(k)
		_, err = g.AddWhile(k.Me, nil, c, body)
		require.NoError(k, err)
		x, s := k.Executable(g), k.Stream(ordinary)
		k.Launch(x, s)
		k.Sync(s)
		require.Equal(k, []uint32{2, 3, 4, 5, 6, 6, 6}, readWords(k, turns), "two turns")
		require.Equal(k, []uint32{1, 0}, readWords(k, noted), "the inner body has run in the first turn only")
		k.Launch(x, s)
		k.Launch(x, k.Stream(ordinary)) // launches follow each other
		k.Launch(x, s)
		k.Sync(s)
		require.Equal(k, []uint32{5, 6, 6, 6, 6, 6, 6}, readWords(k, turns), "each launch begins with the initial value: one turn")
	}},
	{"G13_a_node_runs_the_body_of_fills_that_its_condition_selects", FourQueues | Graphs | Memory | Conditions, func(k *Kit) {
		c, word := newCondition(k, 0)
		c.Resets = false
		at := conditionWords(k, 0, 0, 0)
		g := newGraph(k)
		n, err := g.AddSwitch(k.Me, nil, c, []*hal.Graph{fillWord(k, at, 0, 10), fillWord(k, at, 0, 11), fillWord(k, at, 0, 12)})
		require.NoError(k, err)
		n, err = g.AddIfElse(k.Me, []*hal.Node{n}, c, fillWord(k, at, 1, 1), fillWord(k, at, 1, 2))
		require.NoError(k, err)
		_, err = g.AddIf(k.Me, []*hal.Node{n}, c, fillWord(k, at, 2, 7))
		require.NoError(k, err)
		x, s := k.Executable(g), k.Stream(ordinary)
		for value, want := range map[uint32][]uint32{
			0: {10, 2, 0}, 1: {11, 1, 7}, 2: {12, 1, 7}, 3: {0, 1, 7}, 1 << 31: {0, 1, 7}, 1<<32 - 1: {0, 1, 7},
		} {
			setWords(k, at, 0, 0, 0)
			binary.LittleEndian.PutUint32(word, value)
			k.Launch(x, s)
			k.Sync(s)
			require.Equal(k, want, readWords(k, at), "the condition is %d", value)
		}
	}},
	{"G13_functions_before_a_condition_write_it_and_those_behind_it_wait", FourQueues | Graphs | Memory | Conditions | Gates, func(k *Kit) {
		c, word := newCondition(k, 5)
		at, kept := conditionWords(k, 0), conditionWords(k, 0)
		result, bytes := k.Pinned(4)
		var seen []uint32
		value := uint32(0)
		g := newGraph(k)
		first := addCall(k, g, func() {
			seen = append(seen, binary.LittleEndian.Uint32(word))
			binary.LittleEndian.PutUint32(word, value)
		})
		n, err := g.AddIf(k.Me, []*hal.Node{first}, c, fillWord(k, at, 0, 9))
		require.NoError(k, err)
		n, err = g.AddChild(k.Me, []*hal.Node{n}, capturedCondition(k, func(s *hal.Stream) { k.Copy(s, result.Start, at.Start, 4) }))
		require.NoError(k, err)
		addCall(k, g, func() { seen = append(seen, binary.LittleEndian.Uint32(bytes)) }, n)
		addCall(k, g, func() {}) // a branch of its own
		_, err = g.AddIf(k.Me, nil, hal.GraphCondition{Addr: c.Addr, Initial: 5, Resets: true}, fillWord(k, kept, 0, 3))
		require.NoError(k, err)
		x, s := k.Executable(g), k.Stream(ordinary)
		for _, want := range [][]uint32{{5, 0}, {5, 9}} {
			setWords(k, at, 0)
			seen = nil
			k.Launch(x, s)
			k.Sync(s)
			require.Equal(k, want, seen)
			value = 1
		}
	}},
	{"G13_a_condition_is_read_when_the_node_begins", FourQueues | Graphs | Memory | Conditions | Delays, func(k *Kit) {
		at := conditionWords(k, 0, 0)
		g := newGraph(k)
		for i, initial := range []uint32{0, 1} {
			c, _ := newCondition(k, initial)
			late, err := g.Add(k.Me, k.Device(0), nil, func(s *hal.Stream) error { return s.Delay(k.Me, 20_000_000) })
			require.NoError(k, err)
			written, err := g.Add(k.Me, k.Device(0), []*hal.Node{late}, func(s *hal.Stream) error {
				return s.Fill(k.Me, c.Addr, 1-initial, 4, 1)
			})
			require.NoError(k, err)
			_, err = g.AddIf(k.Me, []*hal.Node{written}, c, fillWord(k, at, i, 7))
			require.NoError(k, err)
		}
		s := k.Stream(ordinary)
		k.Launch(k.Executable(g), s)
		k.Sync(s)
		require.Equal(k, []uint32{7, 0}, readWords(k, at))
	}},
	{"G13_a_graph_with_conditions_is_updated_for_later_launches", FourQueues | Graphs | Memory | Conditions | Gates, func(k *Kit) {
		c, _ := newCondition(k, 1)
		at := conditionWords(k, 0, 0)
		of := func(word int) *hal.Graph {
			g := newGraph(k)
			_, err := g.AddIf(k.Me, nil, c, fillWord(k, at, word, uint32(word+1)))
			require.NoError(k, err)
			return g
		}
		x, s, o := k.Executable(of(0)), k.Stream(ordinary), k.Stream(ordinary)
		gate, err := s.Gate(k.Me)
		require.NoError(k, err)
		k.Launch(x, s)
		require.NoError(k, x.Update(k.Me, of(1)))
		k.Launch(x, o)
		gate.Open()
		k.Sync(s, o)
		require.Equal(k, []uint32{1, 2}, readWords(k, at), "a launch keeps what it does")
	}},
}
