package haltest

import (
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal"
)

var observeCases = []testCase{
	{"M14_the_host_tells_what_it_accesses_itself", Memory, func(k *Kit) {
		s := k.Stream(ordinary)
		a := k.Alloc(0, 64)
		own := make([]byte, 64)
		type seen struct {
			kind          string
			reads, writes []hal.Range
		}
		var got []seen
		stop := k.RT.Listen(func(o hal.Operation) { got = append(got, seen{o.Kind.String(), o.Reads, o.Writes}) })
		defer stop()
		mine := hal.Range{Start: addressOf(own), Size: 64}
		require.NoError(k, k.RT.HostAccess(k.Me, mine, true))
		k.Copy(s, a.Start, mine.Start, mine.Size) // taken within the call
		require.NoError(k, k.RT.HostAccess(k.Me, mine, false))
		require.Equal(k, []seen{
			{"host write", nil, []hal.Range{mine}},
			{"host read", []hal.Range{mine}, nil},
			{"copy", nil, []hal.Range{{Start: a.Start, Size: 64}}},
			{"host read", []hal.Range{mine}, nil},
		}, got)
		k.Sync(s)
	}},
	{"O1_listeners_see_what_is_enqueued", 0, func(k *Kit) {
		s, b := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		var seen []string
		var versions []uint64
		stop := k.RT.Listen(func(o hal.Operation) {
			if o.Host {
				return
			}
			require.Same(k, k.Me, o.Thread)
			seen = append(seen, o.Kind.String())
			versions = append(versions, o.Version)
		})
		require.NoError(k, s.Nop(k.Me))
		k.Record(s, e)
		k.Wait(b, e)
		k.Record(s, e)
		require.NoError(k, b.WaitStream(k.Me, s))
		k.Call(b, func() {})
		stop()
		require.NoError(k, s.Nop(k.Me))
		k.Sync(s, b)
		require.Equal(k, []string{"nop", "record", "wait", "record", "wait stream", "call"}, seen)
		require.Equal(k, []uint64{0, 1, 1, 2, 0, 0}, versions)
	}},
	{"O1_listeners_see_the_order_of_the_stream", Follows | RealTime, func(k *Kit) {
		const threads, each = 4, 5000
		s := k.Stream(ordinary)
		require.NoError(k, k.RT.FollowExecution(true))
		defer func() { require.NoError(k, k.RT.FollowExecution(false)) }()
		var seen []uint32
		stop := k.RT.Listen(func(o hal.Operation) {
			if !o.Host {
				seen = append(seen, o.ID) // one call at a time
			}
		})
		defer stop()
		var group sync.WaitGroup
		for range threads {
			group.Add(1)
			go func() {
				defer group.Done()
				me := hal.NewThread()
				for range each {
					assert.NoError(k, s.Nop(me))
				}
			}()
		}
		group.Wait()
		k.Sync(s)
		stop()
		var ran []uint32
		for _, x := range k.RT.Executions() {
			ran = append(ran, x.Tag)
		}
		require.Len(k, ran, threads*each)
		require.Equal(k, ran, seen)
	}},
	{"O1_listeners_see_records_in_the_order_of_their_event", Unbounded, func(k *Kit) {
		const threads, each = 4, 1000
		e := k.Event(hal.EventOptions{})
		var versions []uint64
		stop := k.RT.Listen(func(o hal.Operation) {
			if o.Kind == hal.OpRecord {
				versions = append(versions, o.Version)
			}
		})
		defer stop()
		var group sync.WaitGroup
		for range threads {
			s := k.Stream(ordinary)
			group.Add(1)
			go func() {
				defer group.Done()
				me := hal.NewThread()
				for range each {
					assert.NoError(k, s.Record(me, e))
				}
			}()
		}
		group.Wait()
		stop()
		require.Len(k, versions, threads*each)
		for i, v := range versions {
			require.EqualValues(k, i+1, v)
		}
	}},
	{"O1_a_listener_may_call_the_runtime", 0, func(k *Kit) {
		s, other := k.Stream(ordinary), k.Stream(ordinary)
		var seen []string
		stop := k.RT.Listen(func(o hal.Operation) {
			seen = append(seen, o.Kind.String())
			if o.Stream == s && o.Kind == hal.OpNop {
				k.Record(other, k.Event(hal.EventOptions{}))
			}
		})
		defer stop()
		require.NoError(k, s.Nop(k.Me))
		stop()
		require.Equal(k, []string{"nop", "new event", "record"}, seen)
		k.Sync(s, other)
	}},
	{"O1_refused_operations_are_not_seen", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		require.NoError(k, e.Close(k.Me))
		defer k.RT.Listen(func(o hal.Operation) { require.Fail(k, o.Kind.String()) })()
		require.Error(k, s.Record(k.Me, e))
		require.Error(k, s.Wait(k.Me, e))
	}},
	{"O2_a_stream_says_what_is_pending", Gates, func(k *Kit) {
		s := k.Stream(ordinary)
		atRest := s.Describe()
		g, err := s.Gate(k.Me)
		require.NoError(k, err)
		require.Contains(k, s.Describe(), "pending")
		require.NotEqual(k, atRest, s.Describe())
		require.Contains(k, k.Device(0).Describe(), s.Describe())
		g.Open()
		k.Sync(s)
		require.Equal(k, atRest, s.Describe())
	}},
	{"O2_a_stream_says_what_it_waits_for", Gates | Explains, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		require.Contains(k, a.Describe(), "idle")
		g, err := a.Gate(k.Me)
		require.NoError(k, err)
		e := k.Event(hal.EventOptions{})
		k.Record(a, e)
		k.Wait(b, e)
		require.Contains(k, b.Describe(), "a wait for event")
		require.Contains(k, b.Describe(), "which nobody has opened")
		g.Open()
		k.Sync(b)
	}},
	{"O3_a_gate_holds_its_stream_until_it_is_opened", Gates, func(k *Kit) {
		s := k.Stream(ordinary)
		g, err := s.Gate(k.Me)
		require.NoError(k, err)
		again, err := s.Gate(k.Me)
		require.NoError(k, err)
		k.Pending(s, "the gate is closed")
		require.False(k, g.Opened())
		again.Open()
		k.Pending(s, "the first gate is closed")
		g.Open()
		g.Open()
		require.True(k, g.Opened())
		k.Sync(s)
	}},
	{"O4_interprocess_events_have_no_timing", 0, func(k *Kit) {
		s := k.Stream(ordinary)
		e := k.Event(hal.EventOptions{Interprocess: true})
		k.Record(s, e)
		k.Sync(s)
		both := k.Event(hal.EventOptions{Interprocess: true, Timing: true})
		require.ErrorIs(k, s.Record(k.Me, both), hal.ErrInvalidValue)
	}},
	{"O5_listeners_are_told_what_the_host_does", 0, func(k *Kit) {
		var seen []string
		var ids []uint32
		stop := k.RT.Listen(func(o hal.Operation) {
			require.Same(k, k.Me, o.Thread)
			ids = append(ids, o.ID)
			if o.Host {
				seen = append(seen, o.Kind.String())
			}
		})
		defer stop()
		s, err := k.Device(0).NewStream(k.Me, ordinary)
		require.NoError(k, err)
		e, err := k.RT.NewEvent(k.Me, nil, hal.EventOptions{})
		require.NoError(k, err)
		hold := Hold(k, s)
		k.Record(s, e)
		k.EventDone(e, false, "a query in vain is not told")
		hold.Release()
		k.Sync(s)
		k.EventDone(e, true, "it is recorded")
		k.Done(s, "it is at rest")
		done, err := e.Synchronize(k.Me, int64(Limit))
		require.NoError(k, err)
		require.True(k, done)
		done, err = k.Device(0).Synchronize(k.Me, int64(Limit))
		require.NoError(k, err)
		require.True(k, done)
		require.NoError(k, e.Close(k.Me))
		require.NoError(k, s.Close(k.Me))
		require.NoError(k, s.Close(k.Me))
		require.Equal(k, []string{"new stream", "new event", "synchronize stream", "query event", "query stream",
			"synchronize event", "synchronize device", "close event", "close stream"}, seen)
		for i, id := range ids {
			require.NotContains(k, ids[:i], id, "each has a number of its own")
		}
	}},
	{"O6_a_backend_that_follows_tells_when_operations_ran", Follows, func(k *Kit) {
		a, b := k.Stream(ordinary), k.Stream(ordinary)
		e := k.Event(hal.EventOptions{})
		require.NoError(k, k.RT.FollowExecution(true))
		defer func() { require.NoError(k, k.RT.FollowExecution(false)) }()
		require.NoError(k, a.Nop(k.Me))
		k.Sync(a)
		require.Empty(k, k.RT.Executions(), "nobody follows it, so it has no number")
		log := k.RT.Log(true)
		defer log.Stop()
		require.NoError(k, a.Nop(k.Me))
		k.Record(a, e)
		k.Wait(b, e)
		require.NoError(k, b.Nop(k.Me))
		k.Sync(b)
		var ids []uint32
		for _, o := range log.Take().All() {
			if !o.Host {
				ids = append(ids, o.ID)
			}
		}
		require.Len(k, ids, 4)
		began, ended := map[uint32]int64{}, map[uint32]int64{}
		for _, x := range k.RT.Executions() {
			require.LessOrEqual(k, x.Began, x.Ended)
			began[x.Tag], ended[x.Tag] = x.Began, x.Ended
		}
		require.Len(k, ended, 4, "each ran once")
		require.GreaterOrEqual(k, began[ids[1]], ended[ids[0]], "in stream order")
		require.GreaterOrEqual(k, began[ids[3]], ended[ids[1]], "behind the event")
	}},
}
