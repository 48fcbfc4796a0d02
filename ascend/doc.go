// Package ascend is the backend for Ascend NPUs: streams and events of AscendCL, whose library
// (libascendcl.so) is loaded at run time. Its name as a backend is "ascend".
//
// Nothing is linked, and only functions that CANN documents are called. The C half finds them
// (symbols.c) and has one C function for each operation (calls.c, lines.c): it releases Python's lock,
// makes the device's primary context current, calls the library, and makes the context current again that
// was. The Go half keeps the state that the library does not report, as package cuda does: which
// functions the streams have reached (blocker.go). What both have in common is in hal/vendor: which of the library's events
// can be recorded again, and the order of operations for listeners.
//
// What differs from CUDA: a stream is held by a blocking callback, for which each stream with functions
// has a thread that does nothing else (lines.c); the default stream has no order with other streams, so the
// backend adds it (stream.go); and memory is filled byte by byte, so patterns are copied (copy.go).
package ascend
