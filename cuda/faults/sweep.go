package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"halstream/cuda/fakectl"
	"halstream/hal"
)

// outcome is what came of a cell.
type outcome string

const (
	reported outcome = "reported" // an error named the function and the code
	lost     outcome = "lost"     // so did it, and the device was lost for good
	absorbed outcome = "absorbed" // the runtime went another way, without an error
)

// cell is one run of the program with one fault.
type cell struct {
	Function string
	Call     int
	Code     int
	Outcome  outcome
	Bad      []string
}

// listCalls prints how often a program without faults calls each function.
func listCalls(fake *fakectl.Fake) {
	c := one(fake, "", 0, 0)
	if len(c.Bad) > 0 {
		fmt.Println(strings.Join(c.Bad, "; "))
		os.Exit(1)
	}
	counts := map[string]int{}
	for _, name := range functionNames() {
		if n := fake.Count(name); n > 0 {
			counts[name] = int(n)
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(counts)
}

// sweep runs the cells of a function.
func sweep(fake *fakectl.Fake, function string) {
	out := json.NewEncoder(os.Stdout)
	for call := 1; call <= calls; call++ {
		for _, code := range codes {
			fmt.Printf("call %d with %d\n", call, code)
			c := one(fake, function, call, code)
			if fake.Count(function) < uint64(call) {
				return // it is not called that often
			}
			_ = out.Encode(c)
		}
	}
}

// old makes the look-alike a driver of the least version, without what is optional:
// then the backend goes the other ways it knows.
func old() {
	for name, value := range map[string]string{"VERSION": "11020", "MEMOPS": "0", "POOLS": "0"} {
		_ = os.Setenv("FAKECUDA_"+name, value)
	}
}

// wordy are called only to put an error into words, so another call fails as well.
var wordy = map[string]bool{"cuGetErrorName": true, "cuGetErrorString": true}

// victim is that other call.
const victim = "cuEventRecord"

// lasting is the code after which a device is lost.
const lasting = 700

// objects are what the look-alike counts.
var objects = []string{"live.streams", "live.events", "live.memory", "live.pinned", "live.registered",
	"live.modules", "live.pools", "live.contexts"}

// one runs the program with one fault, none if function is "".
func one(fake *fakectl.Fake, function string, call, code int) cell {
	c := cell{Function: function, Call: call, Code: code}
	bad := func(format string, args ...any) { c.Bad = append(c.Bad, fmt.Sprintf(format, args...)) }
	if err := fake.Control("reset"); err != nil {
		bad("%v", err)
		return c
	}
	if function != "" {
		if err := fake.Control("fault %s %d %d", function, call, code); err != nil {
			bad("%v", err)
			return c
		}
	}
	if wordy[function] {
		if err := fake.Control("fault %s 0 1", victim); err != nil {
			bad("%v", err)
			return c
		}
	}
	before := runtime.NumGoroutine()
	p := run(fake.Path)
	for _, what := range p.stuck {
		bad("%s did not end", what)
	}
	if n := fake.Count("illegal"); n != 0 {
		bad("%d calls from where none is allowed", n)
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			bad("%d goroutines are left", runtime.NumGoroutine()-before)
			break
		}
	}
	c.Outcome = absorbed
	for _, err := range p.errs {
		var e *hal.Error
		if !errors.As(err, &e) {
			bad("an error of another type: %v", err)
			continue
		}
		named := strings.Contains(e.Text, function+" ") && strings.Contains(e.Text, fmt.Sprintf("(%d)", code)) ||
			wordy[function] && strings.Contains(e.Text, victim) ||
			// Another thread may have been told first that the device is lost.
			code == lasting && strings.Contains(e.Text, fmt.Sprintf("(%d)", code))
		switch {
		case function == "":
			if !consequence(e) {
				bad("%v", err)
			}
		case named && errors.Is(err, hal.ErrDeviceLost):
			c.Outcome = lost
		case named && c.Outcome == absorbed:
			c.Outcome = reported
		case !named && !consequence(e) && !(code == 801 && errors.Is(e, hal.ErrNotSupported)):
			bad("%v does not name %s and %d", err, function, code)
		}
	}
	for _, name := range objects {
		if c.Outcome == lost && name == "live.memory" {
			continue // the vendor's text: what was allocated is lost with the device
		}
		if n := fake.Count(name); n != 0 {
			bad("%s is %d at the end", name, n)
		}
	}
	return c
}

// consequence reports whether an error is one of a call that could not be made
// because an earlier one had failed.
func consequence(e *hal.Error) bool {
	return errors.Is(e, hal.ErrUnrecorded) || errors.Is(e, hal.ErrNotReady) ||
		os.Getenv("FAKECUDA_MEMOPS") == "0" && errors.Is(e, hal.ErrNotSupported)
}
