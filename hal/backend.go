package hal

import (
	"fmt"
	"sort"
	"strings"
	"sync"

	"halstream/hal/driver"
	"halstream/hal/host"
)

// Passed returns why each backend that "auto" would rather have taken could not
// be used: "cuda: ...".
//
// Contract: D3.
func (rt *Runtime) Passed() []string { return rt.passed }

// Opener opens a backend, or says with a BackendAbsent error why it cannot be used.
type Opener func() (driver.Driver, error)

var (
	openersMu sync.Mutex
	openers   = map[string]Opener{}
	ranks     = map[string]int{}
)

// Register adds a backend under a name. Of those that can be used, "auto"
// takes the one with the lowest rank. It panics if the name is taken.
func Register(name string, rank int, open Opener) {
	openersMu.Lock()
	defer openersMu.Unlock()
	if _, taken := openers[name]; taken || open == nil {
		panic("hal: backend " + name + " registered twice or without an opener")
	}
	openers[name], ranks[name] = open, rank
}

func init() {
	Register("host", 100, func() (driver.Driver, error) { return host.Open(host.Options{}) })
}

// OpenBackend opens a backend by name; "auto" takes the first by rank that can
// be used, and Passed then tells why not one before it.
//
// # Errors
//   - [ErrAbsent]: it cannot be used here; the text says why.
//   - [ErrInvalidValue]: no backend has this name.
//
// Contract: D3.
func OpenBackend(name string, threads int) (*Runtime, error) {
	openersMu.Lock()
	var names []string
	for n := range openers {
		names = append(names, n)
	}
	openersMu.Unlock()
	sort.Slice(names, func(i, j int) bool { return ranks[names[i]] < ranks[names[j]] })
	if name != "auto" {
		open, ok := openers[name]
		if !ok {
			return nil, driver.Errorf(driver.InvalidValue, "use backend",
				"no backend is called %q; choose auto, %s", name, strings.Join(names, ", "))
		}
		drv, err := open()
		if err != nil {
			return nil, err
		}
		return Open(drv, threads)
	}
	var reasons []string
	for _, n := range names {
		drv, err := openers[n]()
		if err == nil {
			var rt *Runtime
			if rt, err = Open(drv, threads); err == nil {
				rt.passed = reasons
				return rt, nil
			}
		}
		text := err.Error()
		if e, ok := err.(*Error); ok {
			text = e.Text
		}
		reasons = append(reasons, fmt.Sprintf("%s: %s", n, text))
	}
	return nil, driver.Errorf(driver.BackendAbsent, "use backend", "%s", strings.Join(reasons, "; "))
}
