// Package stall finds waits that can never end, and what a program made and did not
// give up.
//
// [Waits] lists the threads that wait and says when it is time for one of them to look
// closer; [Acting] finds threads of the process that may still act; a [Graph] of who
// waits for whom tells which of them can never go on; [Sites] knows where the program
// enqueued what they wait for; and [Leaks] lists what is alive.
package stall

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Thread is a thread of the process as the operating system knows it.
type Thread struct {
	// ID is the system's number of the thread.
	ID int
	// Name is what it is called, usually like the program.
	Name string
	// Timer says that it waits for a lock with a limit and takes no signals, as a
	// debugger's watchdog does.
	Timer bool
}

// Acting returns the threads of this process that may do something without
// another thread's help, in the order of their numbers. Left out are those that
// known reports, and those whose pthread_self is among handles. A thread that waits
// for a private lock without a limit cannot act: only another thread of the process
// can wake it. Where the system does not tell what a thread does, it counts as
// acting; without /proc there are none. Handles that do not lead to their threads are
// to be repeated in unplaced, as they would name the thread whose stack is next to
// them: that of the calling thread, which runs, so that its stack is not known, and that
// of the main thread, which is not on its stack. known is to report these two.
func Acting(known func(id int) bool, handles []uint64, unplaced ...uint64) []Thread {
	return acting("/proc/self/task", known, handles, unplaced...)
}

func acting(root string, known func(id int) bool, handles []uint64, unplaced ...uint64) []Thread {
	all := tasks(root)
	named := map[int]bool{}
	for _, h := range handles {
		if !slices.Contains(unplaced, h) {
			named[owner(all, h)] = true
		}
	}
	var found []Thread
	for _, t := range all {
		if lock, forever := t.lockWait(); !forever && !named[t.id] && !known(t.id) {
			name, _ := os.ReadFile(filepath.Join(t.dir, "comm"))
			found = append(found, Thread{
				ID: t.id, Name: strings.TrimSpace(string(name)), Timer: lock && takesNoSignals(t.dir),
			})
		}
	}
	return found
}

// task is what the system tells of a thread.
type task struct {
	id   int
	dir  string
	call []string // the fields of the file syscall
}

func tasks(root string) []task {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	var all []task
	for _, e := range entries {
		id, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		t := task{id: id, dir: filepath.Join(root, e.Name())}
		call, err := os.ReadFile(filepath.Join(t.dir, "syscall"))
		if os.IsNotExist(err) {
			if _, err := os.Stat(t.dir); err != nil {
				continue // it has ended meanwhile
			}
		}
		t.call = strings.Fields(string(call))
		all = append(all, t)
	}
	return all
}

// owner returns the number of the thread with this pthread_self, 0 if it is not
// found. What pthread_self names lies at the upper end of the thread's own stack,
// so the nearest stack pointer below it is the thread's.
func owner(all []task, handle uint64) (id int) {
	var nearest uint64
	for _, t := range all {
		if n := len(t.call); n >= 9 {
			sp, err := strconv.ParseUint(t.call[n-2], 0, 64)
			if err == nil && sp < handle && sp > nearest {
				id, nearest = t.id, sp
			}
		}
	}
	return id
}

// Operations of the system call that waits for locks, and a bit of its argument.
const (
	futexWait       = 0
	futexWaitBitset = 9
	futexPrivate    = 128
	futexCommands   = 127
)

// lockWait returns whether the thread waits for a lock of this process, and
// whether that wait has no limit.
func (t task) lockWait() (lock, forever bool) {
	if len(t.call) < 5 || t.call[0] != futexCall {
		return false, false
	}
	op, err := strconv.ParseUint(t.call[2], 0, 64)
	if command := op & futexCommands; err != nil || op&futexPrivate == 0 ||
		command != futexWait && command != futexWaitBitset {
		return false, false
	}
	return true, t.call[4] == "0x0"
}

// takesNoSignals reports whether the thread blocks those that a program can block
// without harm: what threads do that only wait for a moment.
func takesNoSignals(dir string) bool {
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return false
	}
	for _, line := range strings.Split(string(status), "\n") {
		if mask, ok := strings.CutPrefix(line, "SigBlk:"); ok {
			blocked, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && blocked&standardSignals == standardSignals
		}
	}
	return false
}

// standardSignals are numbers 1 to 31 but for KILL and STOP, which cannot be blocked.
const standardSignals = (1<<31 - 1) &^ (1<<8 | 1<<18)

// NeverEnds returns what the thread of this process with the system's number id waits
// for if that cannot come by itself: "a lock" that only another thread can release, or
// "a signal". It returns "" for a thread that may go on, such as one that computes,
// sleeps or reads, and where the system does not tell what threads do.
func NeverEnds(id int) string { return neverEnds("/proc/self/task", id) }

func neverEnds(root string, id int) string {
	call, err := os.ReadFile(filepath.Join(root, strconv.Itoa(id), "syscall"))
	if err != nil {
		return ""
	}
	t := task{call: strings.Fields(string(call))}
	if _, forever := t.lockWait(); forever {
		return "a lock"
	}
	if len(t.call) > 0 && slices.Contains(signalCalls, t.call[0]) {
		return "a signal"
	}
	return ""
}

// Holder returns the system's number of the thread of this process that holds the mutex for which the
// thread id waits, 0 where that is not known: for other locks than glibc's plain mutexes, say.
func Holder(id int) int { return holder("/proc/self", id) }

// Where glibc's mutex has its owner behind the word that threads wait for, and what that word is while
// they do.
const (
	ownerAt   = 8
	contended = 2
)

func holder(root string, id int) int {
	call, err := os.ReadFile(filepath.Join(root, "task", strconv.Itoa(id), "syscall"))
	if err != nil {
		return 0
	}
	t := task{call: strings.Fields(string(call))}
	if _, forever := t.lockWait(); !forever || t.call[3] != "0x"+strconv.Itoa(contended) {
		return 0
	}
	addr, err := strconv.ParseInt(t.call[1], 0, 64)
	if err != nil {
		return 0
	}
	memory, err := os.Open(filepath.Join(root, "mem")) // the mutex may be freed by now
	if err != nil {
		return 0
	}
	defer memory.Close()
	var mutex [ownerAt + 4]byte
	if _, err := memory.ReadAt(mutex[:], addr); err != nil || binary.NativeEndian.Uint32(mutex[:]) != contended {
		return 0
	}
	owner := int(binary.NativeEndian.Uint32(mutex[ownerAt:]))
	if _, err := os.Stat(filepath.Join(root, "task", strconv.Itoa(owner))); err != nil {
		return 0
	}
	return owner
}
