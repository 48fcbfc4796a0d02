package sched

/*
#ifdef __linux__
#define _GNU_SOURCE
#include <sched.h>
#endif
#include <stdint.h>
#include <time.h>

// Returns the number of the processor that the calling thread runs on, -1 where the
// system does not say.
static int hs_processor(void) {
#ifdef __linux__
	return sched_getcpu();
#else
	return -1;
#endif
}

static int64_t hs_spin_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void hs_spin_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

// Called by the thread that runs streams, with no lock held. Polls *word for at most
// spin_ns and returns 1 if it is positive and still is leave_ns later, else 0. On that
// processor it does not wait for the word to become positive.
static int hs_spin(int32_t *word, int64_t spin_ns, int64_t leave_ns, int processor) {
	int64_t start = hs_spin_now(), seen = 0;
	if (processor >= 0 && hs_processor() == processor) spin_ns = 0;
	for (;;) {
		for (int i = 0; i < 16; i++) hs_spin_relax();
		int64_t now = hs_spin_now();
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) <= 0) {
			seen = 0;
			if (now - start >= spin_ns) return 0;
		} else if (seen == 0) {
			seen = now;
		} else if (now - seen >= leave_ns) {
			return 1;
		}
	}
}

// Polls *word while it is positive, for at most limit_ns, and not at all on that processor.
static void hs_spin_while(int32_t *word, int64_t limit_ns, int processor) {
	if (processor >= 0 && hs_processor() == processor) return;
	int64_t start = hs_spin_now();
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) > 0 && hs_spin_now() - start < limit_ns)
		for (int i = 0; i < 16; i++) hs_spin_relax();
}
*/
import "C"

import "sync/atomic"

// spin polls word for forNS nanoseconds and reports whether it became positive and
// stayed so for leaveNS. It is in C, since a goroutine that spins occupies one of
// Go's processors, which threads that call from Python need. On the given processor
// of the machine (-1: none) it does not wait for the word to become positive.
func spin(word *int32, forNS, leaveNS int64, processor int32) bool {
	return C.hs_spin((*C.int32_t)(word), C.int64_t(forNS), C.int64_t(leaveNS), C.int(processor)) == 1
}

// spinWhile polls word until it is not positive, for limitNS nanoseconds at most. It does not wait on the given
// processor of the machine (-1: none).
func spinWhile(word *int32, limitNS int64, processor int32) {
	if atomic.LoadInt32(word) > 0 {
		C.hs_spin_while((*C.int32_t)(word), C.int64_t(limitNS), C.int(processor))
	}
}

// processor returns the number of the processor that the calling thread runs on, -1
// where the system does not say.
func processor() int32 { return int32(C.hs_processor()) }
