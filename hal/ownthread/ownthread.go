// Package ownthread knows the threads that the runtime itself has started, in a library that was
// linked with --wrap=pthread_create.
package ownthread

// #include "ownthread.h"
import "C"

// Is reports whether the Go runtime, or C code linked with it, started the thread with this number
// of the system. In a program linked in another way it returns false.
func Is(id int) bool { return C.halstream_own_thread(C.int32_t(id)) != 0 }
