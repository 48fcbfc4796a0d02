// Package pages answers whether the process can read or write a range of its
// addresses, so that a bad address becomes an error instead of a fault.
//
// The answer is about the moment of the call: a thread that unmaps memory which
// another one copies is a defect of the program that no check can exclude. Copies
// that Read makes itself cannot fault.
package pages

/*
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { HS_NO, HS_YES, HS_UNKNOWN };

#ifdef __linux__

// Of linux/mman.h and linux/fs.h, which older headers lack.
#define HS_POPULATE_READ 22
#define HS_POPULATE_WRITE 23
#define HS_VMA_READABLE 1
#define HS_VMA_WRITABLE 2

struct hs_mapping {
	uint64_t size, flags, addr, start, end, vma_flags, page_size, offset, inode;
	uint32_t major, minor, name_size, build_id_size;
	uint64_t name, build_id;
};
#define HS_MAPPING_QUERY _IOWR('f', 17, struct hs_mapping)

// Touches each page of a range as a read or a write would, without changing it.
static int hs_populate(uint64_t start, uint64_t end, int write) {
	if (madvise((void *)(uintptr_t)start, (size_t)(end - start), write ? HS_POPULATE_WRITE : HS_POPULATE_READ) == 0)
		return HS_YES;
	// Behind the end of a file, or broken hardware. Anything else may also be a
	// kernel without the call, no room, or memory of a device.
	return errno == EFAULT || errno == EHWPOISON ? HS_NO : HS_UNKNOWN;
}

// Asks the kernel for one mapping after the other.
static int hs_query(uint64_t start, uint64_t end, int write) {
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), answer = HS_YES;
	if (fd < 0) return HS_UNKNOWN;
	while (start < end && answer == HS_YES) {
		struct hs_mapping m = {.size = sizeof m, .addr = start};
		if (ioctl(fd, HS_MAPPING_QUERY, &m) != 0) {
			answer = errno == ENOENT ? HS_NO : HS_UNKNOWN;
		} else if (!(m.vma_flags & (write ? HS_VMA_WRITABLE : HS_VMA_READABLE))) {
			answer = HS_NO;
		} else {
			uint64_t last = m.end < end ? m.end : end;
			if (m.inode != 0 && hs_populate(start, last, write) == HS_NO) answer = HS_NO;
			start = m.end;
		}
	}
	close(fd);
	return answer;
}

// Reads the list of mappings, for kernels that cannot be asked.
static int hs_list(uint64_t start, uint64_t end, int write) {
	FILE *list = fopen("/proc/self/maps", "re");
	if (list == NULL) return HS_UNKNOWN;
	char *line = NULL;
	size_t room = 0;
	while (start < end && getline(&line, &room, list) > 0) {
		unsigned long long from, to, offset, inode;
		unsigned major, minor;
		char mode[5];
		if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu", &from, &to, mode, &offset, &major, &minor, &inode) != 7) continue;
		if (to <= start) continue;
		if (from > start || mode[write ? 1 : 0] != (write ? 'w' : 'r')) break;
		uint64_t last = to < end ? to : end;
		if (inode != 0 && hs_populate(start, last, write) == HS_NO) break;
		start = to;
	}
	free(line);
	fclose(list);
	return start >= end ? HS_YES : HS_NO;
}

// Copies without a fault, or returns HS_UNKNOWN: not permitted here, memory of a device, or a bad address.
static int hs_copy(uint64_t to, uint64_t from, uint64_t size) {
	struct iovec l = {(void *)(uintptr_t)to, size}, r = {(void *)(uintptr_t)from, size};
	return process_vm_readv(getpid(), &l, 1, &r, 1, 0) == (ssize_t)size ? HS_YES : HS_UNKNOWN;
}

#else // other systems have none of these calls

static int hs_populate(uint64_t start, uint64_t end, int write) { return HS_UNKNOWN; }
static int hs_query(uint64_t start, uint64_t end, int write) { return HS_UNKNOWN; }
static int hs_list(uint64_t start, uint64_t end, int write) { return HS_UNKNOWN; }
static int hs_copy(uint64_t to, uint64_t from, uint64_t size) { return HS_UNKNOWN; }

#endif

// hs_few is up to how many bytes touching all pages costs less than a look at
// the mappings.
#define HS_FEW (128 << 10)

static int hs_usable(uint64_t addr, uint64_t size, int write) {
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t start = addr & ~(page - 1), end = (addr + size + page - 1) & ~(page - 1);
	int answer = HS_UNKNOWN;
	if (end <= start) return 0;
	if (size <= HS_FEW) answer = hs_populate(start, end, write);
	if (answer == HS_UNKNOWN) answer = hs_query(start, end, write);
	if (answer == HS_UNKNOWN) answer = hs_list(start, end, write);
	if (answer == HS_UNKNOWN) // no /proc: the least that can be known
		answer = msync((void *)(uintptr_t)start, (size_t)(end - start), MS_ASYNC) == 0 ? HS_YES : HS_NO;
	return answer == HS_YES;
}

// hs_whole is up to how many bytes the kernel copies as fast as a check and a copy.
#define HS_WHOLE (8 << 10)

static int hs_read(uint64_t to, uint64_t from, uint64_t size) {
	if (size <= HS_WHOLE && hs_copy(to, from, size) == HS_YES) return 1;
	if (!hs_usable(from, size, 0)) return 0;
	memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
	return 1;
}
*/
import "C"

// Readable reports whether every byte of a range can be read.
func Readable(addr, size uint64) bool { return usable(addr, size, 0) }

// Writable reports whether every byte of a range can be written.
func Writable(addr, size uint64) bool { return usable(addr, size, 1) }

func usable(addr, size uint64, write C.int) bool {
	return addr != 0 && size > 0 && addr+size > addr &&
		C.hs_usable(C.uint64_t(addr), C.uint64_t(size), write) != 0
}

// Read copies size bytes at from to memory of the caller's at to, and reports
// whether all of them could be read. Up to 8 KiB it cannot fault, even where
// another thread unmaps the source meanwhile.
func Read(to, from, size uint64) bool {
	return from != 0 && size > 0 && from+size > from &&
		C.hs_read(C.uint64_t(to), C.uint64_t(from), C.uint64_t(size)) != 0
}
