package haltest

import (
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// sequenceCases compare the order in which listeners see operations of several
// threads with what the functions of those operations found when they ran.
var sequenceCases = []testCase{
	{"O1_listeners_see_functions_in_the_order_of_their_stream", RealTime, func(k *Kit) {
		const threads, each = 4, 1000
		s := k.Stream(ordinary)
		var seen, ran []uint64 // tokens; listeners, and functions on a stream, run one at a time
		stop := k.RT.Listen(func(o hal.Operation) {
			if o.Kind == hal.OpCall {
				seen = append(seen, o.Token)
			}
		})
		defer stop()
		inThreads(threads, func(int) {
			me := hal.NewThread()
			for range each {
				var token uint64
				token = k.served.put(func(*hal.Thread) error { ran = append(ran, token); return nil })
				assert.NoError(k, s.HostFunc(me, token))
			}
		})
		k.Sync(s)
		stop()
		require.Len(k, ran, threads*each)
		require.Equal(k, ran, seen)
	}},
	// Each wait must come after the work of the record that its version names.
	{"O1_listeners_see_which_record_a_wait_is_bound_to", RealTime | Unbounded, func(k *Kit) {
		const rounds = 2000
		from, to := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		var bound []uint64 // the version of each wait
		stop := k.RT.Listen(func(o hal.Operation) {
			if o.Kind == hal.OpWait {
				bound = append(bound, o.Version)
			}
		})
		defer stop()
		var mu sync.Mutex
		done, found := uint64(0), []uint64{} // records whose work is done, now and behind each wait
		record := func(me *hal.Thread) {
			assert.NoError(k, k.served.call(me, from, func(*hal.Thread) error {
				mu.Lock()
				defer mu.Unlock()
				done++
				return nil
			}))
			assert.NoError(k, from.Record(me, e))
		}
		record(k.Me) // listeners do not see a wait for an event that was never recorded
		inThreads(3, func(thread int) {
			me := hal.NewThread()
			for range rounds {
				if thread != 0 {
					record(me)
					continue
				}
				assert.NoError(k, to.Wait(me, e))
				assert.NoError(k, k.served.call(me, to, func(*hal.Thread) error {
					mu.Lock()
					defer mu.Unlock()
					found = append(found, done)
					return nil
				}))
			}
		})
		k.Sync(from, to)
		stop()
		require.Len(k, bound, rounds)
		require.Len(k, found, rounds)
		for i, version := range bound {
			require.GreaterOrEqual(k, found[i], version, "wait %d", i)
		}
	}},
	// Two streams that wait for each other again and again: neither call keeps the other.
	{"O1_listeners_see_waits_of_two_streams_for_each_other", RealTime | Unbounded, func(k *Kit) {
		const rounds = 500
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		seen := map[*hal.Stream]int{}
		stop := k.RT.Listen(func(o hal.Operation) {
			if o.Kind == hal.OpWaitStream {
				seen[o.Stream]++
			}
		})
		defer stop()
		inThreads(2, func(thread int) {
			me := hal.NewThread()
			for range rounds {
				if thread == 0 {
					assert.NoError(k, s.WaitStream(me, other))
				} else {
					assert.NoError(k, other.WaitStream(me, s))
				}
			}
		})
		k.Sync(s, other)
		stop()
		require.Equal(k, map[*hal.Stream]int{s: rounds, other: rounds}, seen)
	}},
	// A gate that is enqueued while the runtime looks for the place of the call, as
	// another thread may do at any moment.
	{"O1_a_free_is_listed_where_it_has_its_place", Memory | Gates, func(k *Kit) {
		s := k.Stream(ordinary)
		d := emptyPool(k, 0)
		b, err := s.AllocAsync(k.Me, small)
		require.NoError(k, err)
		k.Sync(s)
		var seen []string
		stop := k.RT.Listen(func(o hal.Operation) { seen = append(seen, o.Kind.String()) })
		defer stop()
		var gate driver.Gate
		k.RT.SetSites(func() uint32 {
			k.RT.SetSites(nil)
			gate, err = s.Gate(k.Me)
			return 1
		})
		freed := s.FreeAsync(k.Me, b.Start)
		stop()
		require.NoError(k, freed)
		require.NoError(k, err)
		require.NotNil(k, gate)
		defer gate.Open()
		require.ElementsMatch(k, []string{"gate", "free"}, seen)
		p := d.DeferredPoint()
		reached := p == nil || p.Wait(0)
		require.Equal(k, seen[0] == "free", reached, "the free was listed as the other one of %v", seen)
	}},
}

// inThreads runs f in n goroutines, given their numbers, and waits for them.
func inThreads(n int, f func(thread int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Add(1)
		go func() {
			defer group.Done()
			f(i)
		}()
	}
	group.Wait()
}
