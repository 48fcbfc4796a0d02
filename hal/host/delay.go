package host

/*
#include <errno.h>
#include <stdint.h>
#include <time.h>

// Called on an engine's thread, with no lock held. It sleeps on after a signal.
static void hs_delay(int64_t ns) {
	struct timespec left = {ns / 1000000000, ns % 1000000000};
	while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
}
*/
import "C"

// delay keeps the calling engine busy for ns nanoseconds.
func delay(ns int64) { C.hs_delay(C.int64_t(ns)) }
