// The pages that accesses have opened, which are closed together; see touch.c, whose lock guards them.
#ifndef HALSTREAM_OPENED_H
#define HALSTREAM_OPENED_H

#include <stdint.h>

enum { PAGE = 4096 };

// hs_opened_start makes room for the list and empties it; 0 without memory.
int hs_opened_start(void);
// hs_opened_add notes a page, which may be noted already.
void hs_opened_add(uint64_t page);
// hs_opened_forget gives the list up: which pages are open is not known until they are closed.
void hs_opened_forget(void);
// hs_opened_close closes the pages, those beside each other by one call, and empties the
// list. It returns 0 where they are not all known: then the caller closes all areas.
int hs_opened_close(void);
// hs_close_pages closes a range: its next access is seen. The memory keeps its contents.
void hs_close_pages(uint64_t start, uint64_t size);

#endif
