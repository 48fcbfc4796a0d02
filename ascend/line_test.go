package ascend_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal/driver"
)

// A stream gets one thread for its functions, whichever threads enqueue the first ones.
func TestH1_threads_enqueue_the_first_functions_of_a_stream_at_once(t *testing.T) {
	const threads, rounds = 6, 50
	f, _, d := fakeDevice(t)
	before := f.Count("aclrtSubscribeReport")
	s := sink{make(chan bool, threads)}
	for range rounds {
		st, err := d.NewStream(driver.StreamOptions{Level: 3})
		require.NoError(t, err)
		var all sync.WaitGroup
		for range threads {
			all.Go(func() {
				runtime.Gosched()
				if err := st.HostFunc(driver.HostFunc{Token: 1, Sink: s}); err != nil {
					t.Errorf("a function is refused: %v", err)
					s.ended <- false
				}
			})
		}
		all.Wait()
		for range threads {
			<-s.ended
		}
		require.True(t, st.Point().Wait(int64(10*time.Second)))
		defer st.Close() // only now: a later stream gets what this one leaves, its thread, too
		if t.Failed() {
			break
		}
	}
	require.LessOrEqual(t, f.Count("aclrtSubscribeReport")-before, uint64(rounds), "one thread at a time subscribes a stream")
}
