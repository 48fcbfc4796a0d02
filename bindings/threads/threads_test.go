package threads_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/bindings/threads"
)

// table is the one of the process.
var table threads.Table[string]

func TestAThreadKeepsItsNumberUntilItEnds(t *testing.T) {
	var all sync.WaitGroup
	var mu sync.Mutex
	numbers := map[uint32]bool{}
	entered := make(chan struct{}, 4)
	end := make(chan struct{})
	for range 4 {
		all.Go(func() {
			runtime.LockOSThread() // and ends the thread with the goroutine
			kept := "kept"
			number, _ := table.Enter(&kept)
			mu.Lock()
			numbers[number] = true
			mu.Unlock()
			if table.At(number) != &kept {
				t.Errorf("what was kept of thread %d is not found", number)
			}
			entered <- struct{}{}
			<-end
		})
	}
	for range 4 {
		<-entered
	}
	require.Len(t, numbers, 4, "each has a number of its own")
	require.GreaterOrEqual(t, table.Len(), 4)
	found := 0
	for number := range table.All() {
		if numbers[number] {
			found++
		}
	}
	require.Equal(t, 4, found)
	close(end)
	all.Wait()
	// The system's threads end some time after their goroutines, but for the main one: whoever enters takes back the
	// number of each.
	mine, ended := "mine", 0
	require.Eventually(t, func() bool {
		_, list := table.Enter(&mine)
		ended += len(list)
		return ended >= 3
	}, 10*time.Second, time.Millisecond)
	require.NotZero(t, threads.Ident())
}
