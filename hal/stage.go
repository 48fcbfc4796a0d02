package hal

/*
#include <stdint.h>
#include <stdlib.h>

static uint64_t hs_room(uint64_t size) {
	void *room = malloc(size);
	if (room == NULL) abort();
	return (uint64_t)(uintptr_t)room;
}

static void hs_give(uint64_t room) { free((void *)(uintptr_t)room); }
*/
import "C"

import (
	"halstream/hal/driver"
	"halstream/hal/pages"
)

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
	if !pages.Read(room, c.Src, size) {
		s.unstage(room)
		return unusableError("copy", "source", c.Src, size, false)
	}
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

// checkAccess rejects a range of pageable memory of which a page is not mapped, or
// cannot be read or, with write, written: using it would end the process.
func checkAccess(op, role string, addr, size uint64, write bool) error {
	if write && pages.Writable(addr, size) || !write && pages.Readable(addr, size) {
		return nil
	}
	return unusableError(op, role, addr, size, write)
}

func unusableError(op, role string, addr, size uint64, write bool) *Error {
	access := "readable"
	if write {
		access = "writable"
	}
	return driver.Errorf(driver.InvalidValue, op,
		"the %s, %d bytes at %#x, is not %s memory of this process", role, size, addr, access)
}

// CheckMemory rejects a range of addresses of which a page is not mapped or
// cannot be read.
//
// # Errors
//   - [ErrInvalidValue]: a part of the range is not mapped, or cannot be read.
//
// Contract: M3.
func CheckMemory(op string, addr, size uint64) error {
	return checkAccess(op, "memory", addr, size, false)
}
