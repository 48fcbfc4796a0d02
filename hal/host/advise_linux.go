package host

import "syscall"

// giveBack returns a range's pages to the system; they come back zeroed when they are touched again.
func giveBack(pages []byte) { _ = syscall.Madvise(pages, syscall.MADV_DONTNEED) }

// largePages asks the system for large pages of a range, or for small ones again.
func largePages(pages []byte, wanted bool) {
	advice := syscall.MADV_NOHUGEPAGE
	if wanted {
		advice = syscall.MADV_HUGEPAGE
	}
	_ = syscall.Madvise(pages, advice)
}
