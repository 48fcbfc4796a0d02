package program

// #include "symbols.h"
// #include "thread.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"halstream/bindings/waits"
	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/ownthread"
	"halstream/hal/stall"
)

// ReportAdvice says what to do about a stream whose reports no thread takes, in the words of the library.
var ReportAdvice string

// blocked are the waits of the program's threads that have no limit and have gone on for a while.
var blocked stall.Waits

// Slice returns for how many nanoseconds a thread waits before it looks whether its wait can ever end. Under a schedule
// that is long: what the machine does meanwhile must not show in the calls of the run.
func Slice(rt *hal.Runtime) int64 {
	if rt.Deterministic() {
		return 2_000_000_000
	}
	return 100_000_000
}

// errNeverEnds ends a wait that can never end.
var errNeverEnds = errors.New("it can never end")

// Reports says whether waits that can never end are reported.
func Reports() bool { return os.Getenv("HALSTREAM_STALL") != "0" }

// Await waits for a point on the thread with a number, whose stack C has kept, and reports whether it was reached before
// the end of the limit; text is the report of a wait that can never end.
func Await(number uint32, rt *hal.Runtime, p driver.Point, end waits.Deadline) (done bool, text string) {
	now := stackNow()
	of := Threads.At(number)
	of.stack.Store(&now)
	defer of.stack.Store(nil)
	me := uint64(number)
	listed := blocked.Begin(rt, stall.Waiter{Thread: me, Point: p})
	before := ""
	look := func(bool) error {
		if !listed.Due() {
			return nil
		}
		seen := picture(rt).judge(me)
		if seen != "" && seen == before {
			text = seen
			return errNeverEnds // two looks agree
		}
		listed.Answered(seen != "")
		before = seen
		return nil
	}
	wait := waits.Wait{Point: p, End: end, Slice: Slice(rt), Listed: listed, Look: look}
	done, _ = wait.Do()
	return done, text
}

// look is who waits for whom at a moment.
type look struct {
	stall.Graph
	streams map[stall.Party]driver.Busy
	threads map[uint64]*Thread
	held    map[uint64]bool // threads that wait for something outside of the library
	lines   []string
	advice  string
}

func picture(rt *hal.Runtime) *look {
	l := &look{streams: map[stall.Party]driver.Busy{}, threads: map[uint64]*Thread{}, held: map[uint64]bool{}}
	l.Blocked, l.Streams = blocked.Blocked(), rt.Busy()
	known := map[int]bool{}
	reports := map[uint64]uint64{} // the numbers of the threads that run reports, by tokens
	for number, c := range Threads.All() {
		l.threads[uint64(number)] = c
		if token := c.Reporting.Load(); token != 0 {
			reports[token] = uint64(number)
		}
	}
	l.Blocked = slices.DeleteFunc(l.Blocked, func(b stall.Blocked) bool { return l.threads[b.Thread] == nil }) // ended since
	for _, b := range l.Blocked {
		known[l.threads[b.Thread].System] = true
	}
	for _, b := range l.Streams {
		l.streams[stall.Party{Device: b.At.Device, Stream: b.At.Stream}] = b
		thread := uint64(0)
		switch b.Need {
		case driver.NeedFunction:
			thread = l.numberOf(rt.Funcs.Runner(b.Number))
		case driver.NeedReport:
			thread = reports[b.Number]
		}
		if thread == 0 {
			continue
		}
		l.Running = append(l.Running, stall.Running{Thread: thread, Token: b.Number, Report: b.Need == driver.NeedReport})
		if stall.NeverEnds(l.threads[thread].System) != "" {
			l.held[thread] = true
			l.Held = append(l.Held, stall.Held{Thread: thread})
			known[l.threads[thread].System] = true
		}
	}
	quiet, _ := rt.Quiet()
	acts := func(id int) bool { return known[id] || ownthread.Is(id) && !l.runs(id) }
	l.Others = !quiet || len(stall.Acting(acts, nil)) > 0 || signalMayCome()
	return l
}

// runs reports whether the thread with the system's number runs a function that may go on by itself.
func (l *look) runs(id int) bool {
	return slices.ContainsFunc(l.Running, func(r stall.Running) bool {
		return l.threads[r.Thread].System == id && !l.held[r.Thread]
	})
}

func (l *look) numberOf(t *hal.Thread) uint64 {
	for number, c := range l.threads {
		if t != nil && c.T == t {
			return number
		}
	}
	return 0
}

func signalMayCome() bool { return C.hs_program_handles_signals() != 0 }

// judge returns the report for a thread that can never go on, "" if it may.
func (l *look) judge(me uint64) string {
	stuck := l.Stuck(me)
	if !slices.Contains(stuck, stall.Party{Thread: me}) {
		return ""
	}
	var named []stall.Party
	at, circle := stall.Party{Thread: me}, false
	for at != (stall.Party{}) {
		if circle = slices.Contains(named, at); circle {
			named = named[slices.Index(named, at):]
			break
		}
		named = append(named, at)
		if at.Thread != 0 {
			at = l.thread(at.Thread, stuck)
		} else {
			at = l.stream(at, stuck)
		}
	}
	head := "this wait can never end: everything that could end it waits, too"
	if circle {
		head = "this wait can never end: each of these waits for the next, and the last for an earlier one"
		l.advice = "Take these locks in the same order on every thread."
		if slices.ContainsFunc(named, func(p stall.Party) bool { return p.Thread == 0 }) {
			l.advice = "A function must not wait for a thread that waits for the function's stream."
		}
	}
	return strings.TrimSuffix(strings.Join(append([]string{head}, l.lines...), "\n")+"\n"+l.advice, "\n")
}

func (l *look) add(format string, args ...any) {
	l.lines = append(l.lines, "  "+fmt.Sprintf(format, args...))
}

// name returns what a report calls the thread with the system's number.
func (l *look) name(system int) string {
	name := fmt.Sprintf("thread %d", system)
	if system == os.Getpid() {
		name = "the main thread"
	}
	if number := l.numberOfSystem(system); slices.ContainsFunc(l.Running, func(r stall.Running) bool { return r.Thread == number }) {
		return fmt.Sprintf("the function %s, on %s,", functionOf(number), name)
	}
	return name
}

func (l *look) numberOfSystem(system int) uint64 {
	for number, c := range l.threads {
		if c.System == system {
			return number
		}
	}
	return 0
}

// outside adds the lines of a thread that waits outside of the library, and of those that hold the locks
// that it comes to wait for, up to one that has used the library: it returns that one.
func (l *look) outside(system int) stall.Party {
	for seen := []int{}; !slices.Contains(seen, system); {
		seen = append(seen, system)
		waits := stall.NeverEnds(system)
		if waits == "" {
			break
		}
		holder := stall.Holder(system)
		if holder == 0 {
			l.add("%s waits for %s", l.name(system), waits)
			break
		}
		l.add("%s waits for a lock that %s holds", l.name(system), strings.TrimSuffix(l.name(holder), ","))
		if number := l.numberOfSystem(holder); number != 0 {
			return stall.Party{Thread: number}
		}
		system = holder
	}
	return stall.Party{}
}

// thread adds a thread's lines and returns whom it waits for.
func (l *look) thread(number uint64, stuck []stall.Party) (next stall.Party) {
	c := l.threads[number]
	i := slices.IndexFunc(l.Blocked, func(b stall.Blocked) bool { return b.Thread == number })
	if i < 0 {
		l.advice = "Give the function what it waits for before the host waits for it, and not by work behind it."
		return l.outside(c.System)
	}
	name := l.name(c.System)
	on := parties(l.Blocked[i].On)
	if len(on) == 0 {
		return stall.Party{}
	}
	next = firstOf(on, stuck)
	l.add("%s waits for %s", name, l.title(next))
	if s := c.stack.Load(); s != nil {
		for _, f := range s.frames() {
			l.add("    at %s", f.text())
		}
	}
	return next
}

// stream adds a stream's lines and returns whom it waits for.
func (l *look) stream(p stall.Party, stuck []stall.Party) stall.Party {
	b, known := l.streams[p]
	if !known {
		return stall.Party{}
	}
	runner := slices.IndexFunc(l.Running, func(r stall.Running) bool {
		return r.Token == b.Number && r.Report == (b.Need == driver.NeedReport)
	})
	head := b.Head
	if runner >= 0 {
		head = "the function " + functionOf(l.Running[runner].Thread)
	}
	l.add("%s has %d operation(s) pending; the first is %s", b.Title, b.Pending, head)
	switch b.Need {
	case driver.NeedStream, driver.NeedOrder:
		return firstOf(parties(b.On), stuck)
	case driver.NeedFunction, driver.NeedReport:
		if runner >= 0 {
			return stall.Party{Thread: l.Running[runner].Thread}
		}
		if b.Need == driver.NeedReport {
			l.add("no thread takes the reports of this stream")
			l.advice = ReportAdvice
		}
	case driver.NeedEvent:
		l.add("event %d is not recorded, and nobody is left who could record it", b.Number)
		l.advice = "Record the event before the host waits for a stream that waits for it."
	case driver.NeedValue:
		l.add("the value at %#x is not what the stream waits for, and nobody is left who could write it", b.Number)
		l.advice = "Write the value before the wait, or from a thread or a stream that does not wait itself."
	}
	return stall.Party{}
}

func (l *look) title(p stall.Party) string {
	if b, known := l.streams[p]; known {
		return b.Title
	}
	return fmt.Sprintf("stream %d of device %d", p.Stream, p.Device)
}

// functionOf names the function that a thread runs.
func functionOf(thread uint64) string {
	f := frameAt(uintptr(C.hs_program_function_of(C.uint32_t(thread))))
	if f.Function == "" {
		return f.text()
	}
	if f.File == "" {
		return f.Function + " (" + f.module + ")"
	}
	return fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line)
}

// firstOf returns the first party of a list that is stuck, or the first one.
func firstOf(list, stuck []stall.Party) stall.Party {
	for _, p := range list {
		if slices.Contains(stuck, p) {
			return p
		}
	}
	if len(list) > 0 {
		return list[0]
	}
	return stall.Party{}
}

func parties(places []driver.Fence) []stall.Party {
	list := make([]stall.Party, 0, len(places))
	for _, p := range places {
		list = append(list, stall.Party{Device: p.Device, Stream: p.Stream})
	}
	return list
}
