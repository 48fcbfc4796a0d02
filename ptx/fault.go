package ptx

/*
#include "program.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unsafe"
)

// ErrStopped is the error of a run that was stopped.
var ErrStopped = errors.New("ptx: the kernel was stopped")

// Fault is an error of a kernel, or what one of the optional checks found. Its text is in the words of
// compute-sanitizer where that has them.
type Fault struct {
	Kind   string // for example "bounds"; see faultKinds
	Kernel string
	// File and Line are the place in the program that the PTX was compiled from, empty and 0 if it does not say.
	// Inlined are the calls that the place was inlined at, from the innermost one.
	File    string
	Line    int
	Inlined []string
	// Instruction and TextLine are the instruction and its line in the PTX.
	Instruction string
	TextLine    int
	// Other is the second place: of a race the earlier access, of a stuck barrier where other threads wait.
	Other       string
	Block       [3]int
	Thread      [3]int
	OtherThread [3]int
	Address     uint64
	Size        int
	// Count is how often a check found it.
	Count int64
	// Check is the tool of compute-sanitizer for what a check found, empty for errors.
	Check string
	// Place is the same for whatever the same instructions did.
	Place string
	what  string
}

var checks = map[C.int32_t]string{
	C.FIND_RACE_READ: "racecheck", C.FIND_RACE_WRITE: "racecheck", C.FIND_RACE_OVERWRITE: "racecheck",
	C.FIND_UNINITIALIZED: "initcheck", C.FIND_BARRIER_PLACES: "synccheck",
}

var faultKinds = map[C.int32_t]string{
	C.FAULT_BOUNDS: "bounds", C.FAULT_MISALIGNED: "misaligned", C.FAULT_SHARED_BOUNDS: "shared bounds", C.FAULT_LOCAL_BOUNDS: "local bounds",
	C.FAULT_PARAM_BOUNDS: "parameter bounds", C.FAULT_NO_SPACE: "no space", C.FAULT_BARRIER_STUCK: "barrier stuck", C.FAULT_WARP_STUCK: "warp stuck",
	C.FAULT_BARRIER_BAD: "barrier", C.FAULT_ASSERT: "assert", C.FAULT_TRAP: "trap", C.FAULT_BREAK: "breakpoint", C.FAULT_LIMIT: "limit",
	C.FAULT_STACK: "stack", C.FAULT_BRANCH_INDEX: "branch", C.FAULT_CALL_TARGET: "call", C.FAULT_MEMORY: "memory", C.FAULT_COPY_SIZE: "copy",
	C.FIND_RACE_READ: "race", C.FIND_RACE_WRITE: "race", C.FIND_RACE_OVERWRITE: "race", C.FIND_UNINITIALIZED: "uninitialized",
	C.FIND_BARRIER_PLACES: "barrier places",
}

func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.what)
	fmt.Fprintf(&b, " at kernel %s", f.Kernel)
	if f.File != "" {
		fmt.Fprintf(&b, " (%s)", strings.Join(append([]string{fmt.Sprintf("%s:%d", path.Base(f.File), f.Line)}, f.Inlined...), ", inlined at "))
	}
	fmt.Fprintf(&b, " by thread (%d,%d,%d) in block (%d,%d,%d)", f.Thread[0], f.Thread[1], f.Thread[2], f.Block[0], f.Block[1], f.Block[2])
	if f.Other != "" {
		fmt.Fprintf(&b, "; %s", f.Other)
	}
	if f.Instruction != "" {
		fmt.Fprintf(&b, " [%s, PTX line %d]", f.Instruction, f.TextLine)
	}
	if f.Count > 1 {
		fmt.Fprintf(&b, ", %d times", f.Count)
	}
	return b.String()
}

// place returns the source line of an instruction, and where it was inlined.
func (k *Kernel) place(pc int32) (file string, line int, inlined []string) {
	if pc < 0 || int(pc) >= len(k.locs) || k.locs[pc] < 0 {
		return "", 0, nil
	}
	l := k.m.locations[k.locs[pc]]
	file, line = k.m.files[l.file], l.line
	for i := l.inlined; i >= 0 && len(inlined) < 16; {
		at := k.m.locations[i]
		inlined = append(inlined, fmt.Sprintf("%s:%d", path.Base(k.m.files[at.file]), at.line))
		i = at.inlined
	}
	return file, line, inlined
}

// placeText names an instruction's place, in the program if that is known.
func (k *Kernel) placeText(pc int32) string {
	if pc < 0 || int(pc) >= len(k.lines) {
		return "an unknown place"
	}
	file, line, inlined := k.place(pc)
	if file == "" {
		return fmt.Sprintf("PTX line %d", k.lines[pc])
	}
	return strings.Join(append([]string{fmt.Sprintf("%s:%d", path.Base(file), line)}, inlined...), ", inlined at ")
}

var spaceWords = map[C.int32_t]string{
	C.SPACE_GLOBAL: "__global__", C.SPACE_SHARED: "__shared__", C.SPACE_LOCAL: "__local__", C.SPACE_CONST: "__constant__",
	C.SPACE_PARAM: "parameter", C.SPACE_GENERIC: "generic",
}

func accessWord(a C.int32_t) string {
	switch a {
	case C.ACCESS_READ:
		return "read"
	case C.ACCESS_WRITE:
		return "write"
	}
	return "atomic"
}

func ints(v [3]C.int32_t) [3]int { return [3]int{int(v[0]), int(v[1]), int(v[2])} }

func threadText(t [3]int) string { return fmt.Sprintf("(%d,%d,%d)", t[0], t[1], t[2]) }

// nearest describes where an address lies by the nearest range of memory.
func (r *Run) nearest(address uint64) string {
	best, text := ^uint64(0), ""
	ranges := append(unsafe.Slice(r.launch.memory, int(r.launch.memory_count)), r.launch.module)
	for _, m := range ranges {
		start, end := uint64(m.start), uint64(m.end)
		switch {
		case start == end:
		case address >= end && address-end < best:
			best = address - end
			text = fmt.Sprintf("is %d bytes after the nearest allocation at %#x of size %d bytes", best+1, start, end-start)
		case address < start && start-address < best:
			best = start - address
			text = fmt.Sprintf("is %d bytes before the nearest allocation at %#x of size %d bytes", best, start, end-start)
		case address >= start && address < end:
			return fmt.Sprintf("begins %d bytes before the end of the allocation at %#x of size %d bytes", end-address, start, end-start)
		}
	}
	if text == "" {
		return "belongs to no allocation"
	}
	return text
}

// fault makes a Fault of what the executor noted.
func (r *Run) fault(c *C.Fault) *Fault {
	k := r.k
	f := &Fault{
		Kind: faultKinds[c.kind], Kernel: k.f.name, Block: ints(c.block), Thread: ints(c.thread), OtherThread: ints(c.other_thread),
		Address: uint64(c.address), Size: int(c.size), Count: int64(c.count), Check: checks[c.kind],
		Place: fmt.Sprintf("%s %d %d %d", k.f.name, c.kind, c.pc, c.other_pc),
	}
	pc := int32(c.pc)
	f.File, f.Line, f.Inlined = k.place(pc)
	if pc >= 0 && int(pc) < len(k.texts) {
		f.Instruction, f.TextLine = k.texts[pc].text, int(k.lines[pc])
	}
	access, space := accessWord(c.access), spaceWords[c.space]
	switch c.kind {
	case C.FAULT_BOUNDS:
		switch {
		case c.access == 0:
			f.what = fmt.Sprintf("Invalid free of address %#x, which malloc did not return,", f.Address)
		case f.Address < 4096:
			f.what = fmt.Sprintf("Invalid %s %s of size %d bytes at address %#x, which is a null pointer,", space, access, f.Size, f.Address)
		default:
			f.what = fmt.Sprintf("Invalid %s %s of size %d bytes at address %#x, which is out of bounds and %s,", space, access, f.Size, f.Address, r.nearest(f.Address))
		}
	case C.FAULT_MISALIGNED:
		f.what = fmt.Sprintf("Invalid %s %s of size %d bytes at address %#x, which is misaligned,", space, access, f.Size, f.Address)
	case C.FAULT_SHARED_BOUNDS, C.FAULT_LOCAL_BOUNDS, C.FAULT_PARAM_BOUNDS:
		f.what = fmt.Sprintf("Invalid %s %s of size %d bytes at address %#x, which is out of bounds of %d bytes,", space, access, f.Size, f.Address, uint64(c.value))
	case C.FAULT_NO_SPACE:
		f.what = fmt.Sprintf("Invalid %s of size %d bytes at address %#x, which is in no state space,", access, f.Size, f.Address)
	case C.FAULT_BARRIER_STUCK:
		f.what = fmt.Sprintf("Barrier error detected. Divergent thread(s) in block: barrier %d is never met by all threads,", f.Address)
		if c.other_pc >= 0 {
			f.Other = fmt.Sprintf("thread %s waits at %s", threadText(f.OtherThread), k.placeText(int32(c.other_pc)))
		}
	case C.FAULT_WARP_STUCK:
		f.what = "Barrier error detected. Divergent thread(s) in warp: a thread that the mask names never comes,"
		if c.other_pc >= 0 {
			f.Other = fmt.Sprintf("thread %s waits at %s", threadText(f.OtherThread), k.placeText(int32(c.other_pc)))
		}
	case C.FAULT_BARRIER_BAD:
		f.what = fmt.Sprintf("Barrier error detected. Invalid arguments: barrier %d, %d threads,", f.Address, int32(c.value))
	case C.FAULT_ASSERT:
		f.what = C.GoString(&c.text[0])
	case C.FAULT_TRAP:
		f.what = "Trap"
	case C.FAULT_BREAK:
		f.what = "Breakpoint"
	case C.FAULT_LIMIT:
		f.what = fmt.Sprintf("The kernel did not end within %d instructions,", uint64(c.value))
	case C.FAULT_STACK:
		f.what = "Stack overflow: calls are nested too deep"
	case C.FAULT_BRANCH_INDEX:
		f.what = fmt.Sprintf("Jump to entry %d of a list, which has no such entry,", uint64(c.value))
	case C.FAULT_CALL_TARGET:
		f.what = fmt.Sprintf("Call of address %#x, which is no function,", f.Address)
	case C.FAULT_MEMORY:
		f.what = "No memory is left for the kernel's registers"
	case C.FAULT_COPY_SIZE:
		f.what = fmt.Sprintf("Asynchronous copy of %d bytes of at most %d", uint64(c.value), f.Size)
	case C.FIND_RACE_READ:
		f.what = fmt.Sprintf("Race reported between Read access of thread %s at __shared__ %#x", threadText(f.Thread), f.Address)
		f.Other = r.other(f, c, "and Write access")
	case C.FIND_RACE_WRITE:
		f.what = fmt.Sprintf("Race reported between Write access of thread %s at __shared__ %#x", threadText(f.Thread), f.Address)
		f.Other = r.other(f, c, "and Write access")
	case C.FIND_RACE_OVERWRITE:
		f.what = fmt.Sprintf("Race reported between Write access of thread %s at __shared__ %#x", threadText(f.Thread), f.Address)
		f.Other = r.other(f, c, "and Read access")
	case C.FIND_UNINITIALIZED:
		f.what = fmt.Sprintf("Uninitialized __shared__ memory %s at address %#x", access, f.Address)
	case C.FIND_BARRIER_PLACES:
		f.what = fmt.Sprintf("Barrier error detected. Divergent thread(s) in block: barrier %d is met at different places,", f.Address)
		f.Other = fmt.Sprintf("thread %s met it at %s", threadText(f.OtherThread), k.placeText(int32(c.other_pc)))
	default:
		f.what = fmt.Sprintf("Fault %d", int(c.kind))
	}
	return f
}

func (r *Run) other(f *Fault, c *C.Fault, what string) string {
	who := "another thread"
	if c.other_lane >= 0 {
		who = "thread " + threadText(f.OtherThread)
	}
	return fmt.Sprintf("%s of %s at %s", what, who, r.k.placeText(int32(c.other_pc)))
}
