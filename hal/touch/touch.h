// Accesses to memory seen by their pages; see touch.go.
#ifndef HALSTREAM_TOUCH_H
#define HALSTREAM_TOUCH_H

#include <stdint.h>

// A first access to a page since it was closed.
struct hs_touched {
	uint64_t address; // of the first byte
	uint32_t thread;  // the system's number
	uint32_t op;      // the operation that ran on the thread, 0 for none
	int32_t before;   // the place of the page's former contents, -1 for none
	uint8_t write;
};

// What hs_touch_start says.
enum { HS_TOUCH_OK, HS_TOUCH_ABSENT, HS_TOUCH_REFUSED, HS_TOUCH_OLD };

// Each of these functions may be called on any thread; none touches watched memory, and
// none but hs_touch_begin blocks for longer than the system takes to change a page table.

// hs_touch_start begins to watch all areas.
int hs_touch_start(void);
// hs_touch_stop ends it: every thread that waits for a page goes on first.
void hs_touch_stop(void);
// hs_touch_area maps size bytes twice: at *base, which is watched, and at *alias. It
// returns the number of the area, -1 without room.
int hs_touch_area(uint64_t size, uint64_t *base, uint64_t *alias);
// hs_touch_unmap ends an area that nobody uses any more.
void hs_touch_unmap(int area);
// hs_touch_provide gives memory to a part of an area; 0 or an error number.
int hs_touch_provide(int area, uint64_t offset, uint64_t size);
// hs_touch_return gives the memory of a part of an area back.
void hs_touch_return(int area, uint64_t offset, uint64_t size);
// hs_touch_begin says that the calling thread runs an operation now, and closes all pages.
// It waits a few milliseconds for operations on other threads to end, once for each, since
// a page that one of two operations has opened shows nothing of the other.
void hs_touch_begin(uint32_t op);
// hs_touch_patience sets how long it waits from each of these ends on, and from its call.
void hs_touch_patience(int64_t ns);
// hs_touch_end undoes it, on any thread, and closes all pages. It returns whether another
// operation ran at the same time.
int hs_touch_end(uint32_t op);
// hs_touch_take moves what was seen of an operation, or with op 0 of the calling thread
// outside of operations, to list, at most room of them, and returns how many these are.
int hs_touch_take(uint32_t op, struct hs_touched *list, int room);
// hs_touch_former returns the former contents of a page, and hs_touch_drop forgets them.
const char *hs_touch_former(int32_t before);
void hs_touch_drop(int32_t before);
// hs_touch_known says that the calling thread is one of the host's.
void hs_touch_known(void);
// hs_touch_tell sets what is called when an access of the process's first thread outside of
// operations was seen, before the access goes on; NULL: nothing. It runs on a thread of its
// own, and must not wait for the other one.
void hs_touch_tell(void (*told)(void));
// hs_touch_lost counts the accesses that were dropped for want of room, or that
// no operation and no thread could be found for.
uint64_t hs_touch_lost(void);

#endif
