package pybuild

// #include "ownthreads.h"
import "C"

import (
	"encoding/json"

	"halstream/hal/driver"
	"halstream/hal/stall"
)

// StallThreads returns the threads of the process that may do something by
// themselves, have not called the runtime, are not its own, and are not among
// those that handles names, a JSON list of what pthread_self returned: a list of
// threadRecord.
func StallThreads(handles string) (list string, err error) {
	defer guard(&err)
	var named []uint64
	if err := json.Unmarshal([]byte(handles), &named); err != nil {
		return "", raise(driver.Errorf(driver.InvalidValue, "list threads", "%s", err))
	}
	calling := map[int]bool{}
	tids.Lock()
	for t, tid := range tids.of {
		// Threads that are none of Python's may do anything without a call.
		calling[int(tid)] = !tids.foreign[t]
	}
	tids.Unlock()
	found := []threadRecord{}
	known := func(id int) bool { return calling[id] || C.halstream_own_thread(C.int32_t(id)) != 0 }
	for _, t := range stall.Acting(known, named) {
		found = append(found, threadRecord{t.ID, t.Name, t.Timer})
	}
	return encode(found), nil
}
