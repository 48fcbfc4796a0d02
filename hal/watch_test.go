package hal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// runFunction runs f as a function of s with these accesses, and waits for its end.
func runFunction(t *testing.T, rt *hal.Runtime, me *hal.Thread, s *hal.Stream, a hal.Accesses, f func()) {
	t.Helper()
	begun := make(chan struct{})
	close(begun)
	runFunctionAfter(t, begun, rt, me, s, a, f)
}

// runFunctionAfter does the same with a thread for functions that takes none before begun is closed.
func runFunctionAfter(t *testing.T, begun <-chan struct{}, rt *hal.Runtime, me *hal.Thread, s *hal.Stream,
	a hal.Accesses, f func()) {
	t.Helper()
	server, ended := hal.NewThread(), make(chan struct{})
	go func() {
		defer close(ended)
		<-begun
		for {
			if task, _ := rt.Funcs.Next(server, driver.Forever); task.Token == 7 {
				f()
				rt.Funcs.Done(server, false, nil)
				return
			}
		}
	}()
	require.NoError(t, s.HostFuncOn(me, 7, a))
	done, err := s.Synchronize(me, driver.Forever)
	require.NoError(t, err)
	require.True(t, done)
	<-ended
}

// TestV4_undeclared_writes_of_a_function_are_reported runs functions that write to
// ranges declared as only read.
func TestV4_undeclared_writes_of_a_function_are_reported(t *testing.T) {
	rt, me, s, reports := inspected(t)
	defer rt.Listen(func(hal.Operation) {})()
	const small, large = 1 << 10, 1 << 20
	one, two := deviceMemory(t, rt, me, small), deviceMemory(t, rt, me, large)
	reads := []hal.Range{{Start: one, Size: small}, {Start: two, Size: large}}
	run := func(f func()) {
		t.Helper()
		runFunction(t, rt, me, s, hal.Accesses{Reads: reads}, f)
	}
	a, b := bytesAt(one, small), bytesAt(two, large)
	run(func() { a[3]++ })
	require.Empty(t, *reports, "under parallel nobody can say who changed it")

	require.NoError(t, rt.SetSchedule(me, "fifo", driver.Caller{}))
	run(func() {})
	require.Empty(t, *reports)
	run(func() { a[3]++; a[8]++; a[100]++ })
	require.Equal(t, []hal.Range{{Start: one + 3, Size: 1}, {Start: one + 8, Size: 1}, {Start: one + 100, Size: 1}},
		(*reports)[0].ranges)
	run(func() { b[large-1]++ })
	require.Equal(t, []hal.Range{{Start: two + large - 1, Size: 1}}, (*reports)[1].ranges)
	run(func() { a[0]++; _ = rt.HostAccess(nil, hal.Range{Start: 1, Size: 1}, true) })
	require.Len(t, *reports, 2, "the host did something meanwhile")
}

// TestV4_writes_to_memory_that_a_function_does_not_name_are_reported compares all
// device memory, and other memory that the function can reach.
func TestV4_writes_to_memory_that_a_function_does_not_name_are_reported(t *testing.T) {
	rt, me, s, reports := inspected(t)
	defer rt.Listen(func(hal.Operation) {})()
	device := deviceMemory(t, rt, me, 64)
	pinned, err := rt.AllocHost(me, 64)
	require.NoError(t, err)
	require.NoError(t, rt.SetSchedule(me, "fifo", driver.Caller{}))
	touch := func() {
		for i := range 4 {
			bytesAt(device, 64)[8+i]++
		}
		bytesAt(pinned.Start, 64)[5]++
	}
	runFunction(t, rt, me, s, hal.Accesses{}, touch)
	require.Equal(t, []hal.Range{{Start: device + 8, Size: 4}}, (*reports)[0].ranges, "the host may write to pinned memory")
	reached := []hal.Range{{Start: pinned.Start, Size: 64}}
	runFunction(t, rt, me, s, hal.Accesses{Reached: reached}, touch)
	require.ElementsMatch(t, []hal.Range{{Start: device + 8, Size: 4}, {Start: pinned.Start + 5, Size: 1}},
		(*reports)[1].ranges)
	declared := []hal.Range{{Start: device + 9, Size: 2}, {Start: device + 40, Size: 8}, {Start: pinned.Start, Size: 8}}
	runFunction(t, rt, me, s, hal.Accesses{Reached: reached, Writes: declared}, touch)
	require.Equal(t, []hal.Range{{Start: device + 8, Size: 1}, {Start: device + 11, Size: 1}}, (*reports)[2].ranges,
		"what it declares as written is known")
	require.Len(t, *reports, 3)
}

// TestV4_the_largest_blocks_are_left_out_above_a_limit has more device memory than is
// compared around a function.
func TestV4_the_largest_blocks_are_left_out_above_a_limit(t *testing.T) {
	rt, me, s, reports := inspected(t)
	var whole []bool
	rt.SetInspector(&hal.Inspector{
		Observed: func(id uint32, changed []hal.Range) { *reports = append(*reports, found{id, changed}) },
		Compared: func(_ uint32, all bool) { whole = append(whole, all) },
	})
	defer rt.Listen(func(hal.Operation) {})()
	small := deviceMemory(t, rt, me, 64)
	require.NoError(t, rt.SetSchedule(me, "fifo", driver.Caller{}))
	runFunction(t, rt, me, s, hal.Accesses{}, func() {})
	require.Equal(t, []bool{true}, whole)
	large := deviceMemory(t, rt, me, 8<<20)
	touch := func() { bytesAt(small, 64)[1]++; bytesAt(large, 8<<20)[1<<20]++ }
	runFunction(t, rt, me, s, hal.Accesses{}, touch)
	require.Equal(t, []bool{true, false}, whole)
	require.Equal(t, []hal.Range{{Start: small + 1, Size: 1}}, (*reports)[0].ranges)
	runFunction(t, rt, me, s, hal.Accesses{Reads: []hal.Range{{Start: large, Size: 8 << 20}}}, touch)
	last := (*reports)[1].ranges
	require.Len(t, last, 2, "what it declares as read is compared by its parts")
	require.Contains(t, last, hal.Range{Start: small + 1, Size: 1})
	for _, r := range last {
		require.LessOrEqual(t, r.Size, uint64(8<<20)/1024)
	}
}

// TestV4_two_functions_at_once_are_not_told_apart runs a function while another one,
// which waits for the host, has not ended.
func TestV4_two_functions_at_once_are_not_told_apart(t *testing.T) {
	rt, me, s, reports := inspected(t)
	defer rt.Listen(func(hal.Operation) {})()
	device := deviceMemory(t, rt, me, 64)
	require.NoError(t, rt.SetSchedule(me, "fifo", driver.Caller{
		Stuck: func(token uint64) (bool, bool) { return token == 1, false },
	}))
	dev, err := rt.Device(0)
	require.NoError(t, err)
	other, err := dev.NewStream(me, hal.StreamOptions{NonBlocking: true})
	require.NoError(t, err)
	begun, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		waiting := hal.NewThread()
		task, _ := rt.Funcs.Next(waiting, driver.Forever)
		close(begun)
		<-release
		rt.Funcs.Done(waiting, task.Token == 0, nil)
	}()
	require.NoError(t, other.HostFunc(me, 1))
	runFunctionAfter(t, begun, rt, me, s, hal.Accesses{}, func() { bytesAt(device, 64)[0]++ })
	close(release)
	<-ended
	require.Empty(t, *reports)
	runFunction(t, rt, me, s, hal.Accesses{}, func() { bytesAt(device, 64)[0]++ })
	require.Len(t, *reports, 1)
}

// deviceMemory returns the address of n bytes of device memory.
func deviceMemory(t *testing.T, rt *hal.Runtime, me *hal.Thread, n int64) uint64 {
	t.Helper()
	dev, err := rt.Device(0)
	require.NoError(t, err)
	b, err := dev.Alloc(me, n)
	require.NoError(t, err)
	return b.Start
}

func TestW2_nothing_is_quiet_while_a_thread_was_woken_and_does_not_run(t *testing.T) {
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	defer rt.Close()
	quiet, _ := rt.Quiet()
	require.True(t, quiet)
	hal.Wake(1)
	quiet, _ = rt.Quiet()
	hal.Wake(-1)
	require.False(t, quiet)
	quiet, _ = rt.Quiet()
	require.True(t, quiet)
}
