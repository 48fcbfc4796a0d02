package pybuild

import (
	"encoding/json"
	"os"
	"slices"
	"time"

	"halstream/bindings/python"
	"halstream/bindings/threads"
	"halstream/hal/driver"
	"halstream/hal/ownthread"
	"halstream/hal/stall"
)

// StallThreads returns the threads of the process that may do something by
// themselves, are not the runtime's own, and are not among those that handles names,
// a JSON list of what pthread_self returned: a list of threadRecord. A thread of a
// library may have called the runtime before, and may again.
func StallThreads(handles string) (list string, err error) {
	defer guard(&err)
	var named []uint64
	if err := json.Unmarshal([]byte(handles), &named); err != nil {
		return "", raise(driver.Errorf(driver.InvalidValue, "list threads", "%s", err))
	}
	found := []threadRecord{}
	// Of these the stack pointer may be one of Go's, by which Acting does not find them.
	calling := map[int]bool{}
	unplaced := []uint64{threads.Ident()}
	for _, t := range python.Threads.All() {
		calling[t.System] = slices.Contains(named, t.Ident)
		if t.System == os.Getpid() {
			unplaced = append(unplaced, t.Ident)
		}
	}
	calling[threads.System()] = true
	known := func(id int) bool { return calling[id] || ownthread.Is(id) }
	acting := stall.Acting(known, named, unplaced...)
	if len(acting) > 0 {
		// A thread that the runtime has just started is usually known then; one that is not
		// counts as acting, which makes a stall uncertain, and the next look finds it.
		time.Sleep(time.Millisecond)
	}
	for _, t := range acting {
		if !known(t.ID) {
			found = append(found, threadRecord{t.ID, t.Name, t.Timer})
		}
	}
	return encode(found), nil
}

// StallNative returns what a thread waits for that cannot come by itself, by the
// system's number of the thread; "" if it may go on.
func StallNative(thread int64) (waits string, err error) {
	defer guard(&err)
	return stall.NeverEnds(int(thread)), nil
}
