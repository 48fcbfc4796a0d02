package main

import (
	"errors"
	"sync"
	"testing"
	"time"

	"halstream/bindings/ascendcl"
	"halstream/hal"
	"halstream/hal/driver"
)

func TestN3_every_kind_of_error_has_a_code(t *testing.T) {
	for kind := driver.Unknown; kind <= driver.Aborted; kind++ {
		if code := codeOf(driver.Errorf(kind, "call", "text"), nil); code < 100000 || code >= 600000 {
			t.Errorf("errors of kind %v have the code %d", kind, code)
		}
	}
	own := []kindCode{{driver.InvalidValue, ascendcl.ContextReleaseError}}
	if code := codeOf(driver.Errorf(driver.InvalidValue, "call", "text"), own); code != ascendcl.ContextReleaseError {
		t.Errorf("a function's own code is %d, not %d", code, ascendcl.ContextReleaseError)
	}
	wrapped := errors.Join(refuse(ascendcl.ReportTimeout, "text"))
	if code := codeOf(wrapped, own); code != ascendcl.ReportTimeout {
		t.Errorf("a refusal's code is %d, not %d", code, ascendcl.ReportTimeout)
	}
	if code := codeOf(&hal.Error{Kind: driver.Capture, Code: 904}, nil); code != 107025 {
		t.Errorf("an unjoined stream has the code %d, not 107025", code)
	}
}

func TestN16_an_abort_waits_for_36_minutes_at_most(t *testing.T) {
	const most = 36 * time.Minute
	if limit := time.Duration(abortLimit(5)); limit != 5*time.Millisecond {
		t.Errorf("the limit of 5 ms is %v", limit)
	}
	if longest, none := time.Duration(abortLimit(1<<32-1)), time.Duration(abortLimit(0)); longest != most || none != most {
		t.Errorf("the longest limit is %v, and without one it is %v", longest, none)
	}
}

func TestN4_a_handle_names_one_object(t *testing.T) {
	const threads, rounds = 8, 3000
	var all sync.WaitGroup
	handles := make([][]uintptr, threads)
	for i := range threads {
		all.Go(func() {
			for n := range rounds {
				is := [2]int{i, n}
				handle := add(is)
				if found := find(handle); found != is {
					t.Errorf("handle %#x names %v, not %v", handle, found, is)
				}
				remove(handle)
				remove(handle) // a second time takes nothing from others
				handles[i] = append(handles[i], handle)
			}
		})
	}
	all.Wait()
	seen := map[uintptr]bool{}
	for _, list := range handles {
		for _, handle := range list {
			if seen[handle] || handle == 0 {
				t.Fatalf("handle %#x was given twice, or is NULL", handle)
			}
			seen[handle] = true
			if find(handle) != nil {
				t.Fatalf("handle %#x names an object after its end", handle)
			}
		}
	}
	for _, handle := range []uintptr{0, 1, 1 << 40, ^uintptr(0)} {
		if find(handle) != nil {
			t.Errorf("handle %#x was never given and names an object", handle)
		}
	}
}
