/* What kinds of copies cost, with one thread and two, in slices of several sizes:
 * cc -O2 -pthread benchmarks/copies.c -o build/copies && build/copies
 * Each row is a kind, each column a size of slices; medians in microseconds. */

#define _GNU_SOURCE
#include "../hal/host/copy.c"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { SLICES = 4, MOST = 120, HUGE_PAGE = 2 << 20 };

static const uint64_t sizes[] = {1000000, 4000000, 16000000, 64000000};
static const uint64_t slices[SLICES] = {256 << 10, 1 << 20, 4 << 20, (uint64_t)1 << 40};

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void plain(uint64_t to, uint64_t from, uint64_t size) { hs_copy_bytes(to, from, size, 0); }
static void streaming(uint64_t to, uint64_t from, uint64_t size) { hs_copy_bytes(to, from, size, 1); }

static void string(uint64_t to, uint64_t from, uint64_t size) {
#ifdef __x86_64__
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
#else
  plain(to, from, size);
#endif
}

static const struct {
  const char *name;
  void (*copy)(uint64_t, uint64_t, uint64_t);
} kinds[] = {{"memcpy", plain}, {"rep movsb", string}, {"streaming stores", streaming}};

enum { KINDS = sizeof kinds / sizeof *kinds };

static struct {
  int kind;
  uint64_t to, from, size, slice;
  _Atomic uint64_t taken, done;
  _Atomic int round; /* negative: the helper ends */
} job;

/* Copies slices until none is left. */
static void take_part(void) {
  for (;;) {
    uint64_t at = atomic_fetch_add(&job.taken, job.slice);
    if (at >= job.size) return;
    uint64_t size = job.size - at < job.slice ? job.size - at : job.slice;
    kinds[job.kind].copy(job.to + at, job.from + at, size);
    atomic_fetch_add(&job.done, size);
  }
}

/* A thread that is awake: what waking it costs is measured elsewhere. */
static void *help(void *unused) {
  for (int seen = 0, now; (now = atomic_load(&job.round)) >= 0;)
    if (now != seen) {
      seen = now;
      take_part();
    }
  return unused;
}

static int less(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static double median(int kind, uint64_t slice, int count) {
  static int64_t taken[MOST];
  job.kind = kind, job.slice = slice;
  for (int i = -1; i < count; i++) { /* the first one fills the cache */
    atomic_store(&job.done, 0);
    int64_t start = now();
    atomic_store(&job.taken, 0);
    atomic_fetch_add(&job.round, 1);
    take_part();
    while (atomic_load(&job.done) < job.size) {}
    if (i >= 0) taken[i] = now() - start;
    while (now() - start < taken[0] / 100 + 2000) {} /* the helper has left */
  }
  qsort(taken, count, sizeof *taken, less);
  return taken[count / 2] / 1e3;
}

static uint64_t memory(uint64_t size) {
  char *p = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) abort();
  uint64_t start = ((uintptr_t)p + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  madvise((void *)start, size, MADV_HUGEPAGE);
  memset((void *)start, 1, size);
  return start;
}

int main(void) {
  printf("streaming stores are used above %llu bytes\n", (unsigned long long)hs_streaming_from());
  for (unsigned n = 0; n < sizeof sizes / sizeof *sizes; n++) {
    job.size = sizes[n], job.to = memory(sizes[n]), job.from = memory(sizes[n]);
    int count = sizes[n] > 10000000 ? 15 : MOST;
    for (int threads = 1; threads <= 2; threads++) {
      pthread_t helper;
      atomic_store(&job.round, 0);
      atomic_store(&job.taken, job.size);
      if (threads == 2 && pthread_create(&helper, NULL, help, NULL)) return 1;
      printf("\n%llu bytes, threads: %d; slices of 256 KiB, 1 MiB, 4 MiB, one\n", (unsigned long long)sizes[n], threads);
      for (int kind = 0; kind < KINDS; kind++) {
        printf("%-18s", kinds[kind].name);
        for (int i = 0; i < SLICES; i++) printf("%8.0f", median(kind, slices[i], count));
        printf("\n");
      }
      atomic_store(&job.round, -1);
      if (threads == 2) pthread_join(helper, NULL);
    }
  }
  return 0;
}
