// Places where threads sleep; see park.go.
#ifndef HALSTREAM_PARK_H
#define HALSTREAM_PARK_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

typedef struct {
	_Atomic int32_t state;  // 0 nothing, 1 permit, -1 asleep
#ifndef __linux__
	pthread_mutex_t mutex;
	pthread_cond_t cond;
#endif
} hs_parker;

// Whether a limited wait of the calling thread ends when a signal handler has run
// on it: 0 no, 1 yes, 2 one has ended so. A condition variable hides signals, so
// only Linux, with its futex, can. Returns what it was.
extern _Thread_local int hs_park_signals;
int hs_park_end_on_signal(int on);
// For backends that sleep in another way: reports whether a wait of the calling
// thread must end because a signal has interrupted its sleep, and keeps that it did.
int hs_park_signaled(void);

static hs_parker *hs_park_new(void) {
	hs_parker *p = malloc(sizeof *p);
	if (p == NULL) abort();
	atomic_init(&p->state, 0);
#ifndef __linux__
	pthread_mutex_init(&p->mutex, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
#ifndef __APPLE__
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
#endif
	pthread_cond_init(&p->cond, &attr);
	pthread_condattr_destroy(&attr);
#endif
	return p;
}

static int64_t hs_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void hs_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#ifdef __linux__
// Sleeps until the permit comes or that moment (NULL: never).
static int hs_park_sleep(hs_parker *p, const struct timespec *until) {
	for (;;) {
		int32_t seen = 1;
		if (atomic_compare_exchange_strong(&p->state, &seen, 0)) return 1;
		seen = 0;
		if (!atomic_compare_exchange_strong(&p->state, &seen, -1) && seen == 1) continue;
		// Unlike FUTEX_WAIT this one takes a moment, not a duration.
		long r = syscall(SYS_futex, &p->state, FUTEX_WAIT_BITSET_PRIVATE, -1, until, NULL, FUTEX_BITSET_MATCH_ANY);
		// Without a limit only the permit ends it: its caller counts on that.
		int signaled = r == -1 && errno == EINTR && until != NULL && hs_park_signals;
		if (signaled || (r == -1 && errno == ETIMEDOUT)) {
			int32_t asleep = -1;
			if (!atomic_compare_exchange_strong(&p->state, &asleep, 0)) continue;
			if (signaled) hs_park_signals = 2;
			return 0;
		}
	}
}

// Called by any thread that found the state asleep and made it a permit. The
// sleeper may have taken the permit already, and the parker may have another
// user, which takes no notice of being woken without one.
static void hs_park_signal(hs_parker *p) {
	syscall(SYS_futex, &p->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
#else
static int hs_park_sleep(hs_parker *p, const struct timespec *until) {
	int got = 0;
	pthread_mutex_lock(&p->mutex);
	for (;;) {
		int32_t seen = 1;
		if (atomic_compare_exchange_strong(&p->state, &seen, 0)) { got = 1; break; }
		seen = 0;
		if (!atomic_compare_exchange_strong(&p->state, &seen, -1) && seen == 1) continue;
		int err = until == NULL ? pthread_cond_wait(&p->cond, &p->mutex)
		                      : pthread_cond_timedwait(&p->cond, &p->mutex, until);
		if (err == ETIMEDOUT) {
			int32_t asleep = -1;
			if (atomic_compare_exchange_strong(&p->state, &asleep, 0)) break;
		}
	}
	pthread_mutex_unlock(&p->mutex);
	return got;
}

// Called by any thread that found the state asleep and made it a permit.
static void hs_park_signal(hs_parker *p) {
	pthread_mutex_lock(&p->mutex);
	pthread_cond_signal(&p->cond);
	pthread_mutex_unlock(&p->mutex);
}
#endif

// Called by the thread that waits, with no lock of the runtime held. Spins for
// at most spin_ns, then sleeps until the permit comes or limit_ns (< 0: no
// limit) is over, or a signal has come if the thread asked for that. Returns 1
// with the permit taken, else 0.
static int hs_park_wait(hs_parker *p, int64_t limit_ns, int64_t spin_ns) {
	int64_t start = hs_now();
	while (spin_ns > 0) {
		for (int i = 0; i < 32; i++) {
			int32_t one = 1;
			if (atomic_load_explicit(&p->state, memory_order_relaxed) == 1 &&
			    atomic_compare_exchange_strong(&p->state, &one, 0))
				return 1;
			hs_relax();
		}
		if (hs_now() - start >= spin_ns) break;
	}
	struct timespec until;
	if (limit_ns >= 0) {
#ifdef __APPLE__
		clock_gettime(CLOCK_REALTIME, &until);
#else
		clock_gettime(CLOCK_MONOTONIC, &until);
#endif
		int64_t ns = until.tv_nsec + limit_ns % 1000000000;
		until.tv_sec += limit_ns / 1000000000 + ns / 1000000000;
		until.tv_nsec = ns % 1000000000;
	}
	return hs_park_sleep(p, limit_ns < 0 ? NULL : &until);
}

#endif
