#define _GNU_SOURCE
#include "touch.h"
#include "opened.h"

#if defined(__linux__) && defined(__x86_64__)
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Of linux/userfaultfd.h, which older headers lack.
#define FEATURE_EXACT_ADDRESS (1 << 11)
#define FEATURE_WP_SHMEM (1 << 12)
#define CONTINUE_MODE_WP ((uint64_t)1 << 1)
#define WANTED (UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_THREAD_ID | FEATURE_EXACT_ADDRESS | FEATURE_WP_SHMEM)

enum {
	AREAS = 128,
	NOTES = 1 << 16,
	FORMER = 1 << 13, // pages whose former contents are kept
	RUNNING = 256,
	KNOWN = 1024,
	MESSAGES = 16,
	TRIES = 64, // to read one more message, each of a fraction of a microsecond
};

static struct {
	uint64_t base, size, alias;
	int fd;
} areas[AREAS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards all that follows
static struct {
	uint32_t thread, op;
	int passed; // another operation has begun beside it
} running[RUNNING];
static pthread_cond_t ended; // that an operation has, if operations wait for that
static _Atomic int64_t patience = 10 * 1000 * 1000; // nanoseconds
static int active, monitor_fd = -1, stop_fd = -1;
static pthread_t monitor;
static struct hs_touched *notes;
static char *former; // FORMER pages
static int32_t unused[FORMER];
static uint32_t known[KNOWN];
static int n_notes, n_unused, n_running, n_known;
static uint64_t lost;
static int after_fork;
static void (*tell)(void);

static uint32_t self(void) { return (uint32_t)syscall(SYS_gettid); }

static int area_of(uint64_t address) {
	for (int i = 0; i < AREAS; i++)
		if (address - areas[i].base < areas[i].size) return i;
	return -1;
}

static void wake(uint64_t page) {
	struct uffdio_range r = {page, PAGE};
	ioctl(monitor_fd, UFFDIO_WAKE, &r);
}

// Finds the operation of a thread. A thread that the runtime does not know belongs to
// the operation that runs, if there is but one: native code has threads of its own.
static uint32_t operation_of(uint32_t thread) {
	for (int i = 0; i < n_running; i++)
		if (running[i].thread == thread) return running[i].op;
	for (int i = 0; i < n_known; i++)
		if (known[i] == thread) return 0;
	return n_running == 1 ? running[0].op : 0;
}

static int32_t keep_contents(int area, uint64_t page) {
	if (n_unused == 0) return -1;
	int32_t place = unused[--n_unused];
	memcpy(former + (uint64_t)place * PAGE, (const void *)(uintptr_t)(areas[area].alias + page - areas[area].base), PAGE);
	return place;
}

// Notes a fault and lets its thread go on. The lock is held.
static void answer(const struct uffd_msg *m) {
	uint64_t address = m->arg.pagefault.address, page = address & ~(uint64_t)(PAGE - 1);
	uint64_t flags = m->arg.pagefault.flags;
	int write = (flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP)) != 0;
	int area = area_of(page);
	if (area < 0) { // it is being unmapped
		wake(page);
		return;
	}
	if (n_notes < NOTES) {
		uint32_t thread = m->arg.pagefault.feat.ptid, op = operation_of(thread);
		int32_t before = write && op != 0 ? keep_contents(area, page) : -1;
		notes[n_notes++] = (struct hs_touched){address, thread, op, before, (uint8_t)write};
		if (tell && op == 0 && thread == (uint32_t)getpid()) tell();
	} else {
		lost++;
	}
	if (flags & UFFD_PAGEFAULT_FLAG_WP) {
		struct uffdio_writeprotect open = {{page, PAGE}, 0};
		int refused;
		while ((refused = ioctl(monitor_fd, UFFDIO_WRITEPROTECT, &open)) != 0 && errno == EAGAIN) {}
		if (refused) wake(page); // the access is tried again, as where the page was closed meanwhile
		return;
	}
	hs_opened_add(page);
	struct uffdio_continue go = {.range = {page, PAGE}, .mode = write ? 0 : CONTINUE_MODE_WP};
	int failed;
	while ((failed = ioctl(monitor_fd, UFFDIO_CONTINUE, &go)) != 0 && errno == EAGAIN) go.mapped = 0;
	// Another thread opened the page, or it has no memory: the access is tried again.
	if (failed) wake(page);
}

static void *watch(void *unused_argument) {
	(void)unused_argument;
	struct uffd_msg messages[MESSAGES];
	struct pollfd both[2] = {{.fd = monitor_fd, .events = POLLIN}, {.fd = stop_fd, .events = POLLIN}};
	for (;;) {
		if (poll(both, 2, -1) < 0 && errno != EINTR) return NULL;
		// A thread that goes through memory is at the next page long before this one would have slept and woken up.
		for (int tries = 0; tries < TRIES;) {
			ssize_t n = read(monitor_fd, messages, sizeof messages);
			if (n <= 0) {
				tries++;
				continue;
			}
			tries = 0;
			pthread_mutex_lock(&lock);
			for (ssize_t i = 0; i < n / (ssize_t)sizeof *messages; i++)
				if (messages[i].event == UFFD_EVENT_PAGEFAULT) answer(&messages[i]);
			pthread_mutex_unlock(&lock);
		}
		// Only when no area is watched any more: no thread waits then.
		if (both[1].revents) return NULL;
	}
}

static int watch_area(int i) {
	struct uffdio_register r = {
	    .range = {areas[i].base, areas[i].size},
	    .mode = UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP,
	};
	if (ioctl(monitor_fd, UFFDIO_REGISTER, &r) != 0) return -1;
	hs_close_pages(areas[i].base, areas[i].size);
	return 0;
}

// Closes all pages that are open. The lock is held.
static void close_all(void) {
	if (hs_opened_close()) return;
	for (int i = 0; i < AREAS; i++)
		if (areas[i].size) hs_close_pages(areas[i].base, areas[i].size);
}

static int init_ended(void) {
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	int failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) || pthread_cond_init(&ended, &attributes);
	pthread_condattr_destroy(&attributes);
	return !failed;
}

// A forked child has no monitor, and the memory as it was: what it writes is its own.
static void forked(void) {
	for (int i = 0; i < AREAS; i++)
		if (areas[i].size)
			mmap((void *)(uintptr_t)areas[i].base, areas[i].size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, areas[i].fd, 0);
	active = 0;
	pthread_mutex_init(&lock, NULL);
	init_ended();
}

static void *room(uint64_t size) {
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void shut(int *fd) {
	if (*fd >= 0) close(*fd);
	*fd = -1;
}

int hs_touch_start(void) {
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) return errno == EPERM ? HS_TOUCH_REFUSED : HS_TOUCH_ABSENT;
	struct uffdio_api api = {.api = UFFD_API, .features = WANTED};
	if (ioctl(fd, UFFDIO_API, &api) != 0) {
		close(fd);
		return HS_TOUCH_OLD;
	}
	pthread_mutex_lock(&lock);
	if (!notes) notes = room(NOTES * sizeof *notes);
	if (!former) former = room((uint64_t)FORMER * PAGE);
	if (!after_fork) after_fork = init_ended() && pthread_atfork(NULL, NULL, forked) == 0;
	monitor_fd = fd, stop_fd = eventfd(0, EFD_CLOEXEC);
	int ok = notes && former && hs_opened_start() && after_fork && stop_fd >= 0;
	n_notes = n_running = n_known = 0, lost = 0;
	for (n_unused = 0; n_unused < FORMER; n_unused++) unused[n_unused] = n_unused;
	sigset_t all, own;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &own); // signals are for the program's threads
	ok = ok && pthread_create(&monitor, NULL, watch, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &own, NULL);
	for (int i = 0; i < AREAS && ok; i++)
		if (areas[i].size) ok = watch_area(i) == 0;
	active = ok;
	pthread_mutex_unlock(&lock);
	if (!ok) {
		shut(&monitor_fd);
		shut(&stop_fd);
		return HS_TOUCH_ABSENT;
	}
	return HS_TOUCH_OK;
}

void hs_touch_stop(void) {
	pthread_mutex_lock(&lock);
	if (!active) {
		pthread_mutex_unlock(&lock);
		return;
	}
	active = 0;
	for (int i = 0; i < AREAS; i++) {
		struct uffdio_range r = {areas[i].base, areas[i].size};
		if (areas[i].size) ioctl(monitor_fd, UFFDIO_UNREGISTER, &r);
	}
	n_notes = n_running = 0;
	pthread_cond_broadcast(&ended);
	pthread_mutex_unlock(&lock);
	uint64_t one = 1;
	if (write(stop_fd, &one, sizeof one) == sizeof one) pthread_join(monitor, NULL);
	shut(&monitor_fd);
	shut(&stop_fd);
}

int hs_touch_area(uint64_t size, uint64_t *base, uint64_t *alias) {
	int fd = memfd_create("halstream", MFD_CLOEXEC), i = 0;
	void *one = MAP_FAILED, *two = MAP_FAILED;
	if (fd >= 0 && ftruncate(fd, (off_t)size) == 0) {
		one = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
		two = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	}
	if (one != MAP_FAILED && two != MAP_FAILED) {
		madvise(one, size, MADV_NOHUGEPAGE);
		pthread_mutex_lock(&lock);
		while (i < AREAS && areas[i].size) i++;
		if (i < AREAS) {
			areas[i].base = *base = (uint64_t)(uintptr_t)one, areas[i].alias = *alias = (uint64_t)(uintptr_t)two;
			areas[i].fd = fd, areas[i].size = size;
			if (!active || watch_area(i) == 0) {
				pthread_mutex_unlock(&lock);
				return i;
			}
			areas[i].size = 0;
		}
		pthread_mutex_unlock(&lock);
	}
	if (one != MAP_FAILED) munmap(one, size);
	if (two != MAP_FAILED) munmap(two, size);
	if (fd >= 0) close(fd);
	return -1;
}

void hs_touch_unmap(int i) {
	pthread_mutex_lock(&lock);
	uint64_t base = areas[i].base, alias = areas[i].alias, size = areas[i].size;
	int fd = areas[i].fd;
	areas[i].size = 0;
	hs_opened_forget(); // addresses of this area may be among them
	pthread_mutex_unlock(&lock);
	munmap((void *)(uintptr_t)base, size);
	munmap((void *)(uintptr_t)alias, size);
	close(fd);
}

int hs_touch_provide(int area, uint64_t offset, uint64_t size) {
	int failed;
	do failed = fallocate(areas[area].fd, 0, (off_t)offset, (off_t)size);
	while (failed && errno == EINTR);
	return failed ? errno : 0;
}

void hs_touch_return(int area, uint64_t offset, uint64_t size) {
	fallocate(areas[area].fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size);
}

// Whether an operation runs, on another thread, for which no operation has waited in vain yet.
static int worth_waiting(uint32_t thread) {
	for (int i = 0; i < n_running; i++)
		if (!running[i].passed && running[i].thread != thread) return 1;
	return 0;
}

void hs_touch_begin(uint32_t op) {
	uint32_t thread = self();
	pthread_mutex_lock(&lock);
	while (active && worth_waiting(thread)) {
		struct timespec until; // from each end on anew
		clock_gettime(CLOCK_MONOTONIC, &until);
		int64_t ns = until.tv_nsec + patience;
		until.tv_sec += ns / 1000000000, until.tv_nsec = ns % 1000000000;
		if (pthread_cond_timedwait(&ended, &lock, &until)) break;
	}
	if (active) {
		close_all();
		if (n_running < RUNNING) {
			for (int i = 0; i < n_running; i++) running[i].passed = 1;
			running[n_running].thread = thread, running[n_running].op = op;
			running[n_running].passed = n_running > 0;
			n_running++;
		}
	}
	pthread_mutex_unlock(&lock);
}

void hs_touch_patience(int64_t ns) { patience = ns; }

int hs_touch_end(uint32_t op) {
	int beside = 0;
	pthread_mutex_lock(&lock);
	if (active) close_all();
	for (int i = 0; i < n_running; i++)
		if (running[i].op == op) {
			beside = running[i].passed;
			running[i] = running[--n_running];
			pthread_cond_broadcast(&ended);
			break;
		}
	pthread_mutex_unlock(&lock);
	return beside;
}

int hs_touch_take(uint32_t op, struct hs_touched *list, int most) {
	uint32_t thread = self();
	int taken = 0, kept = 0;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < n_notes; i++) {
		int wanted = op != 0 ? notes[i].op == op : notes[i].op == 0 && notes[i].thread == thread;
		if (wanted && taken < most) list[taken++] = notes[i];
		else notes[kept++] = notes[i];
	}
	n_notes = kept;
	if (active && op == 0 && taken > 0) close_all();
	pthread_mutex_unlock(&lock);
	return taken;
}

const char *hs_touch_former(int32_t before) { return former + (uint64_t)before * PAGE; }

void hs_touch_drop(int32_t before) {
	pthread_mutex_lock(&lock);
	if (n_unused < FORMER) unused[n_unused++] = before;
	pthread_mutex_unlock(&lock);
}

void hs_touch_known(void) {
	uint32_t thread = self();
	pthread_mutex_lock(&lock);
	int i = 0;
	while (i < n_known && known[i] != thread) i++;
	if (i == n_known && n_known < KNOWN) known[n_known++] = thread;
	pthread_mutex_unlock(&lock);
}

void hs_touch_tell(void (*told)(void)) {
	pthread_mutex_lock(&lock);
	tell = told;
	pthread_mutex_unlock(&lock);
}

uint64_t hs_touch_lost(void) {
	pthread_mutex_lock(&lock);
	uint64_t n = lost + (uint64_t)n_notes;
	pthread_mutex_unlock(&lock);
	return n;
}

#endif
