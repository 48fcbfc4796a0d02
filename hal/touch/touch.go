// Package touch sees accesses to memory by their pages, whoever makes them: reads as
// well as writes, by any code and by system calls.
//
// Memory of an [Area] is a shared mapping without entries in the page table. The first
// access to a page makes the system ask a thread of this package (userfaultfd, minor
// faults), which notes the thread and the address, and opens the page. A page that was
// read is opened for reading, so that a later write is seen too. The pages are closed
// again when an operation begins or ends, and when what a host thread touched is taken.
// No signal is involved.
//
// # What is known of an access
//
// The address of its first byte, not how far it reaches: of each page the first byte
// that was touched counts, and where the caller asks for it the bytes of the page whose
// contents changed. A page that is open already shows nothing: where several threads
// touch a page at once, only the first is certain to be seen.
package touch

// #include "touch.h"
import "C"

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"halstream/hal/driver"
)

// Page is the size of a page.
const Page = 4096

// span is the addresses of an area.
type span struct{ base, size, alias uint64 }

var (
	active atomic.Bool
	spans  atomic.Pointer[[]span]
	change sync.Mutex // held while one of these changes
)

// Active reports whether accesses are being watched.
func Active() bool { return active.Load() }

// Start begins to watch all areas, also later ones.
//
// # Errors
//   - NotSupported: the system cannot, or does not permit it.
func Start() error {
	change.Lock()
	defer change.Unlock()
	if active.Load() {
		return nil
	}
	why := ""
	switch C.hs_touch_start() {
	case C.HS_TOUCH_OK:
		active.Store(true)
		return nil
	case C.HS_TOUCH_REFUSED:
		why = "the system does not permit userfaultfd: run as root, or set vm.unprivileged_userfaultfd to 1"
	case C.HS_TOUCH_OLD:
		why = "it needs Linux 6.4, where userfaultfd knows minor faults and write protection of shared memory"
	default:
		why = "it needs userfaultfd of Linux on x86-64"
	}
	return driver.Errorf(driver.NotSupported, "watch pages",
		"%s; without it, accesses that functions and the host do not declare are not seen", why)
}

// Stop ends that; the areas stay, and no access waits.
func Stop() {
	change.Lock()
	defer change.Unlock()
	if active.Swap(false) {
		C.hs_touch_stop()
	}
}

// Alias returns where the runtime itself accesses the byte at an address: what it does
// there is not seen. Outside of areas it is the address itself.
func Alias(addr uint64) uint64 {
	if list := spans.Load(); list != nil {
		for _, s := range *list {
			if addr-s.base < s.size {
				return addr - s.base + s.alias
			}
		}
	}
	return addr
}

// Area is a range of addresses whose accesses can be watched.
type Area struct {
	Base   uint64
	span   span
	number C.int
}

// NewArea maps size bytes, none of which has memory yet.
//
// # Errors
//   - OutOfMemory: the system gives no addresses.
func NewArea(size uint64) (*Area, error) {
	size = RoundUp(size)
	var base, alias C.uint64_t
	number := C.hs_touch_area(C.uint64_t(size), &base, &alias)
	if number < 0 {
		return nil, driver.Errorf(driver.OutOfMemory, "allocate", "the system gives no %d bytes of shared memory", size)
	}
	a := &Area{uint64(base), span{uint64(base), size, uint64(alias)}, number}
	change.Lock()
	defer change.Unlock()
	var list []span
	if old := spans.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = append(list, a.span)
	spans.Store(&list)
	return a, nil
}

// RoundUp returns the least number of bytes in whole pages.
func RoundUp(size uint64) uint64 { return (size + Page - 1) &^ (Page - 1) }

// Provide gives memory to a range of whole pages.
//
// # Errors
//   - OutOfMemory: the system has none.
func (a *Area) Provide(start, size uint64) error {
	if code := C.hs_touch_provide(a.number, C.uint64_t(start-a.Base), C.uint64_t(size)); code != 0 {
		return driver.Errorf(driver.OutOfMemory, "allocate", "the system has no %d bytes of shared memory (error %d)", size, code)
	}
	return nil
}

// Return gives the memory of a range of whole pages back.
func (a *Area) Return(start, size uint64) {
	C.hs_touch_return(a.number, C.uint64_t(start-a.Base), C.uint64_t(size))
}

// Close unmaps the area. Nobody uses its memory any more.
func (a *Area) Close() {
	change.Lock()
	list := slices.DeleteFunc(slices.Clone(*spans.Load()), func(s span) bool { return s == a.span })
	if len(list) == 0 {
		spans.Store(nil)
	} else {
		spans.Store(&list)
	}
	change.Unlock()
	C.hs_touch_unmap(a.number)
}

// Range is a range of bytes, Size long.
type Range struct{ Start, Size uint64 }

// Begin says that the calling thread runs an operation from now on. Where others run it
// waits some milliseconds for their ends, since what two operations touch at the same time
// is seen of the first only; it does not wait twice for the same operation.
func Begin(op uint32) { C.hs_touch_begin(C.uint32_t(op)) }

// setPatience sets how long Begin waits.
func setPatience(d time.Duration) { C.hs_touch_patience(C.int64_t(d)) }

// End ends an operation, and returns what it touched, and whether another operation ran
// beside it. With compare, all bytes count as written that changed in the pages that it
// wrote to: nobody else may have changed them.
func End(op uint32, compare bool) (reads, writes []Range, beside bool) {
	beside = C.hs_touch_end(C.uint32_t(op)) != 0
	reads, writes = take(op, compare)
	return reads, writes, beside
}

// TakeHost returns what the calling thread has touched outside of operations since its
// last call, and closes all pages if it has touched any.
func TakeHost() (reads, writes []Range) {
	C.hs_touch_known()
	return take(0, false)
}

// Tell sets the function in C that is called when an access of the process's first thread outside of
// operations was seen, before the access goes on; nil for none. It runs on a thread of this package
// and must not wait for the other one.
func Tell(f unsafe.Pointer) { C.hs_touch_tell((*[0]byte)(f)) }

// Lost returns how many accesses there were of which it is not known who made them.
func Lost() uint64 { return uint64(C.hs_touch_lost()) }

// takeMost is how many accesses are taken at once.
const takeMost = 1024

func take(op uint32, compare bool) (reads, writes []Range) {
	var list [takeMost]C.struct_hs_touched
	for {
		n := int(C.hs_touch_take(C.uint32_t(op), &list[0], takeMost))
		for _, one := range list[:n] {
			first := Range{uint64(one.address), 1}
			if one.write == 0 {
				reads = append(reads, first)
				continue
			}
			writes = append(writes, first)
			if one.before >= 0 {
				if compare {
					writes = append(writes, changed(first.Start&^(Page-1), one.before)...)
				}
				C.hs_touch_drop(one.before)
			}
		}
		if n < takeMost {
			return reads, writes
		}
	}
}

// changed returns the bytes of a page that differ from its former contents.
func changed(page uint64, before C.int32_t) (found []Range) {
	former := unsafe.Slice((*byte)(unsafe.Pointer(C.hs_touch_former(before))), Page)
	now := contents(Alias(page))
	for i := 0; i < Page; i++ {
		if now[i] == former[i] {
			continue
		}
		j := i + 1
		for j < Page && now[j] != former[j] {
			j++
		}
		found = append(found, Range{page + uint64(i), uint64(j - i)})
		i = j
	}
	return found
}

// contents returns a page that the process can read.
func contents(page uint64) []byte { return unsafe.Slice(*(**byte)(unsafe.Pointer(&page)), Page) }
