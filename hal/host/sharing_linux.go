package host

/*
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// A range of this process that other processes can map, for its children, which have it for themselves.
struct range {
	uint64_t addr, size, offset;
	int file;
	struct range *next;
};
static struct range *ranges;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void in_child(void)
{
	for (struct range *r = ranges; r; r = r->next)
		mmap((void *)(uintptr_t)r->addr, r->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, r->file, (off_t)r->offset);
	ranges = NULL;
	after_fork();
}
static void follow_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }

// Returns a file of a size that exists only in memory, or -1.
static int hs_memory_file(uint64_t size)
{
	int file = memfd_create("halstream device memory", MFD_CLOEXEC);
	if (file >= 0 && ftruncate(file, (off_t)size)) {
		close(file);
		file = -1;
	}
	return file;
}

// Moves pages of the process, on which nothing works, into a file. Returns 0 or an error number; then nothing has changed.
static int hs_move_pages(uint64_t addr, uint64_t size, int file, uint64_t offset)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, follow_forks);
	struct range *r = malloc(sizeof *r);
	if (!r) return ENOMEM;
	*r = (struct range){addr, size, offset, file, NULL};
	for (uint64_t done = 0; done < size;) {
		ssize_t n = pwrite(file, (char *)(uintptr_t)addr + done, size - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR) continue;
		if (n <= 0) {
			free(r);
			return n < 0 ? errno : ENOSPC;
		}
		done += (uint64_t)n;
	}
	pthread_mutex_lock(&lock);
	int error = 0;
	if (mmap((void *)(uintptr_t)addr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, (off_t)offset) == MAP_FAILED) {
		error = errno;
		free(r);
	} else {
		r->next = ranges;
		ranges = r;
	}
	pthread_mutex_unlock(&lock);
	return error;
}

// Forgets the ranges of a file, which is closed.
static void hs_close_file(int file)
{
	pthread_mutex_lock(&lock);
	for (struct range **at = &ranges; *at;) {
		struct range *r = *at;
		if (r->file == file) {
			*at = r->next;
			free(r);
		} else {
			at = &r->next;
		}
	}
	pthread_mutex_unlock(&lock);
	close(file);
}
*/
import "C"

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"halstream/hal/driver"
)

const opShare, opMap = "share memory with other processes", "map memory of another process"

// sharing is what other processes can map of a region: a file with as many bytes as the region has, of which those pages
// lie in the region that have been shared.
type sharing struct {
	file  int             // 0 for none yet
	pages []driver.Extent // in order
}

// share lets other processes map a range of the region, on whose pages nothing works meanwhile.
func (r *region) share(addr, size uint64) (driver.SharedMemory, error) {
	if r.watched {
		return driver.SharedMemory{}, driver.Errorf(driver.NotSupported, opShare,
			"the memory's pages are watched, which another process would not notice; run without the watch of pages")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	started, err := startOf(os.Getpid())
	if err != nil {
		return driver.SharedMemory{}, driver.Errorf(driver.NotSupported, opShare, "other processes find memory by /proc: %v", err)
	}
	if r.sharing.file == 0 {
		file := C.hs_memory_file(C.uint64_t(r.limit))
		if file < 0 {
			return driver.SharedMemory{}, driver.Errorf(driver.OutOfMemory, opShare, "the system gives no file for it")
		}
		r.sharing.file = int(file)
	}
	page := uint64(syscall.Getpagesize())
	from, to := addr&^(page-1), (addr+size+page-1)&^(page-1)
	for part := r.sharing.missing(from, to); part.Start < part.End; part = r.sharing.missing(from, to) {
		bytes := C.uint64_t(part.End - part.Start)
		if e := C.hs_move_pages(C.uint64_t(part.Start), bytes, C.int(r.sharing.file), C.uint64_t(part.Start-r.base)); e != 0 {
			return driver.SharedMemory{}, driver.Errorf(driver.OutOfMemory, opShare, "%d bytes: %v", bytes, syscall.Errno(e))
		}
		r.sharing.add(part)
	}
	return driver.SharedMemory{Process: os.Getpid(), Started: started, File: r.sharing.file, Offset: addr - r.base, Size: size}, nil
}

// missing returns the first part of a range that is not shared, an empty one without any.
func (s *sharing) missing(from, to uint64) driver.Extent {
	for _, p := range s.pages {
		if p.Start > from {
			return driver.Extent{Start: from, End: min(p.Start, to)}
		}
		if from = max(from, p.End); from >= to {
			return driver.Extent{}
		}
	}
	return driver.Extent{Start: from, End: to}
}

// add notes that pages are shared, as a part of those before them if they touch them.
func (s *sharing) add(part driver.Extent) {
	at := 0
	for at < len(s.pages) && s.pages[at].Start < part.Start {
		at++
	}
	if at > 0 && s.pages[at-1].End == part.Start {
		s.pages[at-1].End = part.End
		return
	}
	s.pages = slices.Insert(s.pages, at, part)
}

// returned gives the memory of pages back that are not used any more.
func (s *sharing) returned(offset, size uint64) {
	const punchHole, keepSize = 2, 1
	if s.file != 0 && size > 0 {
		_ = syscall.Fallocate(s.file, punchHole|keepSize, int64(offset), int64(size))
	}
}

func (s *sharing) close() {
	if s.file != 0 {
		C.hs_close_file(C.int(s.file))
	}
	*s = sharing{}
}

// provideShared maps new memory that other processes can map as well.
func provideShared(size uint64) (uint64, driver.SharedMemory, error) {
	started, err := startOf(os.Getpid())
	if err != nil {
		return 0, driver.SharedMemory{}, driver.Errorf(driver.NotSupported, opShare, "other processes find memory by /proc: %v", err)
	}
	file := int(C.hs_memory_file(C.uint64_t(size)))
	if file < 0 {
		return 0, driver.SharedMemory{}, driver.Errorf(driver.OutOfMemory, opShare, "the system gives no file for it")
	}
	m := driver.SharedMemory{Process: os.Getpid(), Started: started, File: file, Size: size}
	addr, err := mapShared(m)
	if err != nil {
		withdrawShared(m)
	}
	return addr, m, err
}

// withdrawShared closes the file of memory that provideShared has mapped.
func withdrawShared(m driver.SharedMemory) { _ = syscall.Close(m.File) }

// mapShared maps what another process shares.
func mapShared(m driver.SharedMemory) (uint64, error) {
	if started, err := startOf(m.Process); err != nil || started != m.Started {
		return 0, driver.Errorf(driver.InvalidValue, opMap, "process %d, which shared it, has ended", m.Process)
	}
	file, err := syscall.Open(fmt.Sprintf("/proc/%d/fd/%d", m.Process, m.File), syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, driver.Errorf(driver.InvalidValue, opMap, "process %d, which shared it, does not let this one have it (%v): "+
			"both must belong to the same user, and see the same /proc", m.Process, err)
	}
	defer syscall.Close(file)
	page := uint64(syscall.Getpagesize())
	from := m.Offset &^ (page - 1)
	var state syscall.Stat_t
	if err := syscall.Fstat(file, &state); err != nil || m.Size == 0 || m.Offset+m.Size < m.Offset || uint64(state.Size) < m.Offset+m.Size {
		return 0, driver.Errorf(driver.InvalidValue, opMap, "process %d shares no such memory", m.Process)
	}
	b, err := syscall.Mmap(file, int64(from), int(m.Offset+m.Size-from), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return 0, driver.Errorf(driver.OutOfMemory, opMap, "%d bytes: %v", m.Size, err)
	}
	return uint64(uintptr(unsafe.Pointer(&b[0]))) + m.Offset - from, nil
}

// isRunning reports whether a process runs, and began at started, unless that is 0.
func isRunning(process int, started uint64) bool {
	began, err := startOf(process)
	return err == nil && (started == 0 || began == started)
}

// unmapShared ends a mapping.
func unmapShared(addr, size uint64) {
	page := uint64(syscall.Getpagesize())
	from := addr &^ (page - 1)
	// The slice is what Mmap returned: Munmap finds it by its last byte and its length.
	_ = syscall.Munmap(unsafe.Slice(*(**byte)(unsafe.Pointer(&from)), addr+size-from))
}

// startOf returns when a process that runs began, in clock ticks of the system.
func startOf(process int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return 0, err
	}
	// The name of the program, in parentheses, may have any characters.
	_, rest, _ := strings.Cut(string(text[max(0, strings.LastIndexByte(string(text), ')')):]), " ")
	const state, start = 0, 19 // of the fields behind the name
	fields := strings.Fields(rest)
	switch {
	case len(fields) <= start:
		return 0, fmt.Errorf("/proc/%d/stat has no start of the process", process)
	case fields[state] == "Z" || fields[state] == "X":
		return 0, fmt.Errorf("process %d has ended", process)
	}
	return strconv.ParseUint(fields[start], 10, 64)
}
