#define _GNU_SOURCE
#include "opened.h"

#if defined(__linux__) && defined(__x86_64__)
#include <stdlib.h>
#include <sys/mman.h>

enum { OPENED = 1 << 16 };

static uint64_t *opened;
static int n_opened; // more than OPENED where they are not all known

int hs_opened_start(void) {
	n_opened = 0;
	if (opened) return 1;
	void *p = mmap(NULL, OPENED * sizeof *opened, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) return 0;
	opened = p;
	return 1;
}

void hs_opened_add(uint64_t page) {
	if (n_opened < OPENED) opened[n_opened] = page;
	if (n_opened <= OPENED) n_opened++;
}

void hs_opened_forget(void) {
	if (n_opened > 0) n_opened = OPENED + 1;
}

void hs_close_pages(uint64_t start, uint64_t size) { madvise((void *)(uintptr_t)start, size, MADV_DONTNEED); }

static int by_address(const void *a, const void *b) {
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

int hs_opened_close(void) {
	int n = n_opened;
	n_opened = 0;
	if (n > OPENED) return 0;
	// Two threads open their pages in turns: only sorted do neighbours stand beside each other.
	qsort(opened, (size_t)n, sizeof *opened, by_address);
	for (int i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && opened[j] <= opened[j - 1] + PAGE;) j++;
		hs_close_pages(opened[i], opened[j - 1] + PAGE - opened[i]);
	}
	return 1;
}
#endif
