package program

import (
	"fmt"
	"os"
	"strings"

	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/order"
)

// sanitizing is the check of the process, nil without one.
var sanitizing *order.Session

// sanitize begins the check that HALSTREAM_SANITIZE asks for.
func sanitize(rt *hal.Runtime) error {
	value := os.Getenv("HALSTREAM_SANITIZE")
	switch value {
	case "", "0":
		return nil
	case "1", "warn", "raise", "threads":
	default:
		return driver.Errorf(driver.InvalidValue, "open backend",
			"HALSTREAM_SANITIZE is %q; give 1, threads, or 0 for nothing: a program in C has no check of pages", value)
	}
	if value != "threads" && os.Getenv("HALSTREAM_RECORD") == "" { // a record is of real threads
		t := hal.NewThread()
		defer t.Retire()
		if err := rt.OrderCalls(t, true, whoCalls(rt)); err != nil {
			return err
		}
	}
	sanitizing = order.NewSession(false)
	useSites(rt)
	sanitizing.Follow(rt)
	return nil
}

// report writes what the check has found to stderr, and returns how much.
func report() int {
	if sanitizing == nil {
		return 0
	}
	var texts []string
	for _, f := range sanitizing.Take(true) {
		// A function does not say what it accesses, and what orders the program's
		// threads, such as its locks, is not seen: both would be reported in vain.
		if f.Category != order.Undeclared && f.Category != order.ByTiming {
			texts = append(texts, textOf(&f))
		}
	}
	if len(texts) > 0 {
		fmt.Fprintf(os.Stderr, "%s\n", strings.Join(texts, "\n"))
	}
	return len(texts)
}

// textOf returns a finding in the words that the Python package uses.
func textOf(f *order.Finding) string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	size := bytesOf(f.Range.Size)
	switch f.Category {
	case order.Refill:
		add("pinned memory refilled: %s changed after the call that copies them, before the host waited for it", size)
	case order.ByQuery:
		add("ordered by a query only: two operations touch the same %s", size)
	default:
		add("unordered access: two operations touch the same %s, and nothing orders them", size)
	}
	if f.Block.Size > 0 && f.Range.Start >= f.Block.Start {
		first := f.Range.Start - f.Block.Start
		where := fmt.Sprintf("  bytes %d to %d of %s of %s", first, first+f.Range.Size-1, f.Kind, bytesOf(f.Block.Size))
		if made := placeOf(f.BlockSite); made != "" {
			where += ", made at " + made
		}
		add("%s", where)
	}
	if f.Category == order.Refill {
		add("  the copy, on %s", streamText(f.First))
		addPlace(add, f.First)
		add("  fix: wait for the copy before the host writes there again")
		return strings.Join(lines, "\n")
	}
	for i, a := range []order.Access{f.First, f.Second} {
		does := "reads"
		if a.Write {
			does = "writes"
		}
		if a.Host {
			add("  %d. the host %s", i+1, does)
		} else {
			what := a.Name
			if what == "" {
				what = a.Kind.String()
			}
			add("  %d. %s %s on %s", i+1, what, does, streamText(a))
		}
		addPlace(add, a)
	}
	if about := string(f.Reason.Memory); about != "" {
		add("  the memory was %s", about)
	}
	add("  why: %s", f.Reason.Why)
	if f.Second.Host {
		add("  fix: synchronize with %s before the second call", streamText(f.First))
	} else {
		add("  fix: record an event on %s behind the first call, and let %s wait for it before the second",
			streamText(f.First), streamText(f.Second))
	}
	return strings.Join(lines, "\n")
}

func addPlace(add func(string, ...any), a order.Access) {
	if place := placeOf(a.Site); place != "" {
		add("       %s", place)
	}
}

// streamText names a stream by its number.
func streamText(a order.Access) string {
	if a.Host {
		return "the host"
	}
	return fmt.Sprintf("stream %d of device %d", a.Stream, a.Device)
}

func bytesOf(n uint64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}
