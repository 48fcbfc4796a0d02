package haltest

import (
	"encoding/binary"
	"errors"

	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// newCondition returns a condition in pinned memory, and its bytes.
func newCondition(k *Kit, initial uint32) (hal.GraphCondition, []byte) {
	k.T.Helper()
	b, word := k.Pinned(4)
	binary.LittleEndian.PutUint32(word, 0)
	return hal.GraphCondition{Addr: b.Start, Initial: initial, Resets: true}, word
}

// countDown returns a body with one function, which calls f and subtracts 1 from a word.
func countDown(k *Kit, word []byte, f func()) *hal.Graph {
	k.T.Helper()
	body := newGraph(k)
	addCall(k, body, func() {
		f()
		binary.LittleEndian.PutUint32(word, binary.LittleEndian.Uint32(word)-1)
	})
	return body
}

// failsTwice launches a graph twice, the second time as if the first one had not been, and returns the texts of
// the errors that functions of it give the stream.
func failsTwice(k *Kit, g *hal.Graph) (texts []string) {
	k.T.Helper()
	s, x := k.Stream(ordinary), k.Executable(g)
	for range 2 {
		k.Launch(x, s)
		done, err := s.Synchronize(k.Me, int64(Limit))
		require.True(k, done, "the body runs again and again")
		require.ErrorIs(k, err, hal.ErrHostFunction)
		texts = append(texts, err.Error())
	}
	k.Sync(s)
	return texts
}

var conditionCases = []testCase{
	{"G13_a_body_runs_if_the_condition_is_not_0", FourQueues | Graphs | Memory | Conditions | HostBodies, func(k *Kit) {
		var seq sequence
		c, word := newCondition(k, 0)
		c.Resets = false
		body, g := newGraph(k), newGraph(k)
		addCall(k, body, seq.note("body"))
		first := addCall(k, g, seq.note("first"))
		n, err := g.AddIf(k.Me, []*hal.Node{first}, c, body)
		require.NoError(k, err)
		require.Equal(k, hal.OpIf, n.Kind())
		require.Len(k, n.Bodies(), 1)
		require.Len(k, n.Bodies()[0].Nodes(), 1)
		addCall(k, g, seq.note("last"), n)
		addCall(k, body, seq.note("later")) // the node has the body as it was
		x, s := k.Executable(g), k.Stream(ordinary)
		for i, want := range [][]string{{"first", "last"}, {"first", "body", "last"}, {"first", "last"}} {
			binary.LittleEndian.PutUint32(word, uint32(i%2*256)) // any bit counts
			k.Launch(x, s)
			k.Sync(s)
			require.Equal(k, want, seq.take())
		}
	}},
	{"G13_a_body_runs_again_while_the_condition_is_not_0", FourQueues | Graphs | Memory | Conditions | HostBodies, func(k *Kit) {
		c, word := newCondition(k, 3)
		var runs, ends counter
		inner, innerWord := newCondition(k, 1)
		once, body, g := newGraph(k), newGraph(k), newGraph(k)
		addCall(k, once, func() { ends.add(); binary.LittleEndian.PutUint32(innerWord, 0) })
		work := addCall(k, body, func() {
			runs.add()
			binary.LittleEndian.PutUint32(word, binary.LittleEndian.Uint32(word)-1)
		})
		_, err := body.AddWhile(k.Me, []*hal.Node{work}, inner, once)
		require.NoError(k, err)
		addCall(k, body, func() {}) // a branch of its own
		n, err := g.AddWhile(k.Me, nil, c, body)
		require.NoError(k, err)
		addCall(k, g, func() { require.Zero(k, binary.LittleEndian.Uint32(word)) }, n)
		x, s, o := k.Executable(g), k.Stream(ordinary), k.Stream(ordinary)
		k.Launch(x, s, o)
		k.Sync(s, o)
		require.Equal(k, 6, runs.get(), "each launch begins with the initial value")
		require.Equal(k, 2, ends.get(), "the inner condition is 0 after its first run, for the whole launch")
	}},
	{"G13_a_node_runs_the_body_that_its_condition_selects", FourQueues | Graphs | Memory | Conditions | HostBodies, func(k *Kit) {
		var seq sequence
		c, word := newCondition(k, 0)
		c.Resets = false
		inner, innerWord := newCondition(k, 2)
		zero, one, two, g := newGraph(k), newGraph(k), newGraph(k), newGraph(k)
		addCall(k, zero, seq.note("zero"))
		_, err := one.AddWhile(k.Me, []*hal.Node{addCall(k, one, seq.note("one"))}, inner, countDown(k, innerWord, seq.note("down")))
		require.NoError(k, err)
		addCall(k, two, seq.note("two"))
		n, err := g.AddSwitch(k.Me, nil, c, []*hal.Graph{zero, one, two})
		require.NoError(k, err)
		require.Equal(k, hal.OpSwitch, n.Kind())
		require.Len(k, n.Bodies(), 3)
		reads, _ := n.Accesses()
		require.Contains(k, reads, hal.Range{Start: inner.Addr, Size: 4}, "of the second graph")
		n, err = g.AddIfElse(k.Me, []*hal.Node{n}, c, zero, two)
		require.NoError(k, err)
		addCall(k, g, seq.note("last"), n)
		x, s := k.Executable(g), k.Stream(ordinary)
		for value, want := range map[uint32][]string{
			0: {"zero", "two", "last"}, 1: {"one", "down", "down", "zero", "last"}, 2: {"two", "zero", "last"},
			3: {"zero", "last"}, 1 << 31: {"zero", "last"}, 1<<32 - 1: {"zero", "last"},
		} {
			binary.LittleEndian.PutUint32(word, value)
			k.Launch(x, s)
			k.Sync(s)
			require.Equal(k, want, seq.take(), "the condition is %d", value)
		}
		for _, want := range []string{"switch of 3 graphs", "case 2 of 1 node", "if of 2 graphs", "else of 1 node", "n0_case1_1_0"} {
			require.Contains(k, g.DOT(nil, false), want)
		}
		clone, err := g.Clone(k.Me)
		require.NoError(k, err)
		require.NoError(k, x.Update(k.Me, clone))
		fewer := newGraph(k)
		_, err = fewer.AddSwitch(k.Me, nil, c, []*hal.Graph{zero, one})
		require.NoError(k, err)
		other := newGraph(k)
		_, err = other.AddSwitch(k.Me, nil, c, []*hal.Graph{zero, one, two})
		require.NoError(k, err)
		k.CaptureFails(k.Executable(other).Update(k.Me, fewer), 910)
		changed := newGraph(k)
		_, err = changed.AddSwitch(k.Me, nil, c, []*hal.Graph{zero, one, one})
		require.NoError(k, err)
		err = k.Executable(other).Update(k.Me, changed)
		k.CaptureFails(err, 910)
		require.ErrorContains(k, err, "in body 2 of node 0")
		_, err = g.AddSwitch(k.Me, nil, c, nil)
		require.ErrorIs(k, err, hal.ErrInvalidValue)
	}},
	{"G13_copies_and_fills_write_conditions", FourQueues | Graphs | Memory | Conditions | HostBodies, func(k *Kit) {
		c, _ := newCondition(k, 1)
		var runs counter
		body, g := newGraph(k), newGraph(k)
		zero := k.Alloc(0, 4)
		k.Write(zero, make([]byte, 4))
		s := k.Stream(ordinary)
		k.Capture(s)
		k.Call(s, runs.add)
		k.Copy(s, c.Addr, zero.Start, 4)
		captured := k.EndCapture(s)
		_, err := g.AddWhile(k.Me, nil, c, captured)
		require.NoError(k, err)
		_, err = body.AddWhile(k.Me, nil, c, captured)
		require.NoError(k, err)
		k.Launch(k.Executable(g), s)
		k.Sync(s)
		require.Equal(k, 1, runs.get())
		require.Contains(k, g.DOT(nil, false), "while")
	}},
	{"G13_bodies_that_cannot_be_are_refused", FourQueues | Graphs | Memory | Conditions, func(k *Kit) {
		c, _ := newCondition(k, 1)
		g, empty, s, e := newGraph(k), newGraph(k), k.Stream(ordinary), k.Event(hal.EventOptions{})
		_, err := empty.AddEmpty(k.Me, nil)
		require.NoError(k, err)
		_, err = g.AddWhile(k.Me, nil, c, empty)
		require.ErrorContains(k, err, "never end")
		a, b := conditionWords(k, 0), conditionWords(k, 0)
		for name, body := range map[string]*hal.Graph{
			"a fill elsewhere": fillWord(k, a, 0, 0),
			"a copy elsewhere": capturedCondition(k, func(s *hal.Stream) { k.Copy(s, a.Start, b.Start, 4) }),
		} {
			around := newGraph(k)
			_, err = around.AddChild(k.Me, nil, body)
			require.NoError(k, err)
			_, err = g.AddWhile(k.Me, nil, c, around)
			require.ErrorContains(k, err, "never end", name)
		}
		_, err = g.AddIf(k.Me, nil, hal.GraphCondition{Addr: k.Alloc(0, 4).Start}, empty)
		require.ErrorContains(k, err, "pinned memory")
		k.Capture(s)
		require.NoError(k, s.RecordExternal(k.Me, e))
		_, err = g.AddIf(k.Me, nil, c, k.EndCapture(s))
		require.ErrorIs(k, err, hal.ErrNotSupported)
		require.ErrorContains(k, err, "node 0 (record")
		k.Capture(s)
		_, err = s.AllocAsync(k.Me, small)
		require.NoError(k, err)
		_, err = g.AddIf(k.Me, nil, c, k.EndCapture(s))
		require.ErrorIs(k, err, hal.ErrNotSupported)
		require.Empty(k, g.Nodes())
	}},
	{"G13_an_error_in_a_body_is_that_of_the_stream", FourQueues | Graphs | Memory | Conditions | HostBodies, func(k *Kit) {
		c, _ := newCondition(k, 1)
		body, g := newGraph(k), newGraph(k)
		_, err := body.Add(k.Me, k.Device(0), nil, func(s *hal.Stream) error {
			return k.served.call(k.Me, s, func(*hal.Thread) error { return errors.New("the node failed") })
		})
		require.NoError(k, err)
		_, err = g.AddIf(k.Me, nil, c, body)
		require.NoError(k, err)
		s := k.Stream(ordinary)
		k.Launch(k.Executable(g), s)
		_, err = s.Synchronize(k.Me, int64(Limit))
		require.ErrorIs(k, err, hal.ErrHostFunction)
		k.Sync(s)
	}},
	{"G13_a_body_in_which_a_function_fails_does_not_run_again", FourQueues | Graphs | Memory | Conditions | HostBodies, func(k *Kit) {
		c, _ := newCondition(k, 1) // never becomes 0: what would do it has failed
		inner, outer, g := newGraph(k), newGraph(k), newGraph(k)
		ran := 0
		_, err := inner.Add(k.Me, k.Device(0), nil, func(s *hal.Stream) error {
			return k.served.call(k.Me, s, func(*hal.Thread) error { ran++; return errors.New("the node failed") })
		})
		require.NoError(k, err)
		_, err = outer.AddIf(k.Me, nil, c, inner)
		require.NoError(k, err)
		_, err = g.AddWhile(k.Me, nil, c, outer)
		require.NoError(k, err)
		failsTwice(k, g)
		require.Equal(k, 2, ran)
	}},
	{"G13_a_loop_ends_whose_function_has_failed_and_left_its_condition", FourQueues | Graphs | Memory | Conditions | HostBodies, func(k *Kit) {
		c, _ := newCondition(k, 1)
		for _, nested := range []bool{false, true} { // which ends both loops: neither condition can change any more
			body, g := newGraph(k), newGraph(k)
			ran := 0
			_, err := body.Add(k.Me, k.Device(0), nil, func(s *hal.Stream) error {
				return k.served.call(k.Me, s, func(*hal.Thread) error { ran++; return errUnchecked })
			})
			require.NoError(k, err)
			if nested {
				outer, inner := newGraph(k), body
				word, _ := newCondition(k, 1)
				_, err = outer.AddWhile(k.Me, nil, word, inner)
				require.NoError(k, err)
				body = outer
			}
			_, err = g.AddWhile(k.Me, nil, c, body)
			require.NoError(k, err)
			for _, text := range failsTwice(k, g) {
				require.Contains(k, text, "nothing has changed its condition")
			}
			require.Equal(k, 2, ran)
		}
	}},
	{"G13_a_loop_goes_on_whose_function_has_failed_while_its_condition_changes", FourQueues | Graphs | Memory | Conditions | HostBodies, func(k *Kit) {
		c, word := newCondition(k, 3)
		body, g := newGraph(k), newGraph(k)
		ran := 0
		_, err := body.Add(k.Me, k.Device(0), nil, func(s *hal.Stream) error {
			return k.served.call(k.Me, s, func(*hal.Thread) error {
				if ran++; ran%2 == 0 { // the condition stays as it is, and nothing fails
					return nil
				}
				word[0]--
				return errUnchecked
			})
		})
		require.NoError(k, err)
		_, err = g.AddWhile(k.Me, nil, c, body)
		require.NoError(k, err)
		s, x := k.Stream(ordinary), k.Executable(g)
		k.Launch(x, s)
		k.Sync(s)
		require.Equal(k, 5, ran)
	}},
	// Not under schedules: they would run the body without an end before they let this thread go on.
	{"G13_an_abort_ends_a_body_that_runs_again", FourQueues | Graphs | Memory | Conditions | HostBodies | Aborts | RealTime, func(k *Kit) {
		c, _ := newCondition(k, 1)
		body, g := newGraph(k), newGraph(k)
		entered := make(chan struct{}, 1)
		_, err := body.Add(k.Me, k.Device(0), nil, func(s *hal.Stream) error {
			return k.served.call(k.Me, s, func(*hal.Thread) error {
				select {
				case entered <- struct{}{}:
				default:
				}
				return nil
			})
		})
		require.NoError(k, err)
		_, err = g.AddWhile(k.Me, nil, c, body)
		require.NoError(k, err)
		s := k.Stream(ordinary)
		k.Launch(k.Executable(g), s)
		Receive(k, entered, "the body does not run")
		_, err = s.Abort(k.Me)
		require.NoError(k, err)
		k.Eventually(func() bool { done, _ := s.Query(k.Me); return done }, "the body runs on after the abort")
	}},
}
