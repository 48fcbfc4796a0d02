package hal_test

import (
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

var soakOperations = flag.Int("soak", 40_000, "operations of TestSoak; make soak asks for millions")

// soakSlot is a stream that many threads use, with the numbers of functions that it
// accepted and ran.
type soakSlot struct {
	stream        atomic.Pointer[hal.Stream]
	accepted, ran atomic.Int64
}

// TestSoak lets eight threads work on 64 streams, while one closes streams under them and one switches schedules.
// Every function that was accepted runs exactly once.
func TestSoak(t *testing.T) {
	const threads, streams = 8, 64
	rt, err := hal.OpenBackend("host", 4)
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	device, err := rt.Device(0)
	require.NoError(t, err)
	slots := make([]soakSlot, streams)
	fresh := func(me *hal.Thread, i int) *hal.Stream {
		s, err := device.NewStream(me, hal.StreamOptions{NonBlocking: i%3 != 0, Priority: -(i % 3)})
		require.NoError(t, err)
		return s
	}
	me := hal.NewThread()
	for i := range slots {
		slots[i].stream.Store(fresh(me, i))
	}
	var dispatchers, workers, others sync.WaitGroup
	rt.Funcs.Start()
	dispatchers.Go(func() { soakDispatch(rt, slots, &dispatchers) })
	var left atomic.Int64
	left.Store(int64(*soakOperations))
	ended := make(chan struct{})
	for i := range threads {
		workers.Go(func() { soakWork(t, rt, device, slots, &left, uint64(i)) })
	}
	others.Go(func() { // closes streams while others enqueue on them
		me, pick := hal.NewThread(), rand.New(rand.NewPCG(1, 1))
		for tick := time.NewTicker(time.Millisecond); ; {
			select {
			case <-ended:
				return
			case <-tick.C:
				i := pick.IntN(streams)
				assert.NoError(t, slots[i].stream.Swap(fresh(me, i)).Close(me))
			}
		}
	})
	others.Go(func() { // refused whenever work is pending, which is most of the time
		me := hal.NewThread()
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-ended:
				return
			case <-tick.C:
				if rt.SetSchedule(me, "random 1", driver.Caller{}) == nil {
					time.Sleep(time.Millisecond) // the others call under it
					for errors.Is(rt.SetSchedule(me, "parallel", driver.Caller{}), hal.ErrNotReady) {
						_, _ = device.Synchronize(me, int64(time.Second))
					}
				}
			}
		}
	})
	workers.Wait()
	close(ended)
	others.Wait()
	done, err := device.Synchronize(me, int64(time.Minute))
	require.NoError(t, err)
	require.True(t, done, device.Describe())
	rt.Funcs.Close()
	dispatchers.Wait()
	for i := range slots {
		require.Equal(t, slots[i].accepted.Load(), slots[i].ran.Load(), "functions of slot %d", i)
	}
}

// soakDispatch runs functions, which count for their slots, until the queue is closed.
func soakDispatch(rt *hal.Runtime, slots []soakSlot, group *sync.WaitGroup) {
	me := hal.NewThread()
	defer me.Retire()
	for {
		task, err := rt.Funcs.Next(me, int64(time.Second))
		switch {
		case task.End || err != nil:
			return
		case task.Token == 0:
			continue
		case task.Spawn:
			group.Go(func() { soakDispatch(rt, slots, group) })
		}
		if !task.Drop {
			slots[task.Token-1].ran.Add(1)
			rt.Funcs.Done(me, false, nil)
		}
	}
}

func soakWork(t *testing.T, rt *hal.Runtime, device *hal.Device, slots []soakSlot, left *atomic.Int64, seed uint64) {
	me, pick := hal.NewThread(), rand.New(rand.NewPCG(seed, 7))
	events := make([]*hal.Event, 4)
	for i := range events {
		e, err := rt.NewEvent(me, device, hal.EventOptions{})
		if !assert.NoError(t, err) {
			return
		}
		events[i] = e
	}
	for left.Add(-1) > 0 {
		i := pick.IntN(len(slots))
		s := slots[i].stream.Load()
		e := events[pick.IntN(len(events))]
		var err error
		switch kind := pick.IntN(100); {
		case kind < 40:
			err = s.Nop(me)
		case kind < 60:
			if err = s.Record(me, e); err == nil {
				err = slots[pick.IntN(len(slots))].stream.Load().Wait(me, e)
			}
		case kind < 75:
			_, err = s.Query(me)
		case kind < 85:
			slots[i].accepted.Add(1) // before the call: it may run at once
			if err = s.HostFunc(me, uint64(i+1)); err != nil {
				slots[i].accepted.Add(-1)
			}
		case kind < 98:
			_, err = e.Query(me)
		default:
			var done bool
			if done, err = s.Synchronize(me, int64(time.Minute)); err == nil && !assert.True(t, done, s.Describe()) {
				return
			}
		}
		if err != nil && !assert.ErrorIs(t, err, hal.ErrClosed) {
			return
		}
	}
}
