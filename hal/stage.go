package hal

/*
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

static uint64_t hs_room(uint64_t size) {
	void *copy = malloc(size);
	if (copy == NULL) abort();
	return (uint64_t)(uintptr_t)copy;
}

static void hs_take(uint64_t to, uint64_t from, uint64_t size) {
	memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
}

static void hs_give(uint64_t room) { free((void *)(uintptr_t)room); }

// Returns 1 if the system's list of mappings has one with this address that can
// be read, or cannot be read itself.
static int hs_listed(uint64_t addr) {
	FILE *list = fopen("/proc/self/maps", "re");
	if (list == NULL) return 1;
	char *line = NULL;
	size_t room = 0;
	int found = 0;
	while (!found && getline(&line, &room, list) > 0) {
		unsigned long long start, end;
		char readable;
		found = sscanf(line, "%llx-%llx %c", &start, &end, &readable) == 3 &&
			addr >= start && addr < end && readable == 'r';
	}
	free(line);
	fclose(list);
	return found;
}

// Returns 1 if two bytes can be read. A range that is only reserved has pages,
// and using them ends the process.
static int hs_readable(uint64_t first, uint64_t last) {
	char bytes[2];
	struct iovec to = {bytes, 2}, from[2] = {{(void *)(uintptr_t)first, 1}, {(void *)(uintptr_t)last, 1}};
	ssize_t n = process_vm_readv(getpid(), &to, 1, from, 2, 0);
	if (n == 2 || (n < 0 && errno != EFAULT)) return 1; // the call may not be permitted here
	return hs_listed(first) && hs_listed(last);         // it cannot read memory of hardware
}

// Returns 1 if every page of a range is mapped, and its ends can be read.
static int hs_mapped(uint64_t addr, uint64_t size) {
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = addr & ~(page - 1);
	if (msync((void *)(uintptr_t)start, (size_t)(addr + size - start), MS_ASYNC) != 0) return 0;
	return hs_readable(addr, addr + size - 1);
}
*/
import "C"

import "halstream/hal/driver"

// stage copies the pageable source of a copy, size bytes, into memory that is
// given back when the copy is done.
func (s *Stream) stage(c *driver.Copy, size uint64) error {
	room := uint64(0)
	if from := s.dev.stager; from != nil {
		var err error
		if room, err = from.Stage(size); err != nil {
			return err
		}
		c.From = driver.Pinned
	} else {
		room = uint64(C.hs_room(C.uint64_t(size)))
	}
	C.hs_take(C.uint64_t(room), C.uint64_t(c.Src), C.uint64_t(size))
	c.Src, c.Release = room, room
	return nil
}

// unstage gives the memory of stage back where no copy was enqueued.
func (s *Stream) unstage(room uint64) {
	if from := s.dev.stager; from != nil {
		from.Unstage(room)
	} else {
		C.hs_give(C.uint64_t(room))
	}
}

// mapped refuses addresses at which the process has no memory: using them
// would end it.
func mapped(op, role string, addr, size uint64) error {
	if addr == 0 || addr+size < addr || C.hs_mapped(C.uint64_t(addr), C.uint64_t(size)) == 0 {
		return driver.Errorf(driver.InvalidValue, op,
			"the %s, %d bytes at %#x, is not memory of this process", role, size, addr)
	}
	return nil
}

// CheckMemory refuses a range of addresses at which the process has no memory
// that can be read.
//
// # Errors
//   - [ErrInvalidValue]: a part of the range is not mapped, or cannot be read.
//
// Contract: M3.
func CheckMemory(op string, addr, size uint64) error { return mapped(op, "memory", addr, size) }
