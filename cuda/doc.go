// Package cuda is the backend for NVIDIA GPUs: streams and events of the CUDA
// driver, which is loaded at run time.
//
// Nothing is linked and no toolkit is needed. The C half finds the driver's
// functions (symbols.c) and makes one C function of each operation (calls_*.c):
// it gives Python's lock up, makes the device's primary context current, calls,
// and restores what was current. The Go half keeps what the driver does not:
// which events can be used again (mark.go), which functions of the program a
// stream has reached (hold.go, poller.go), and whether the device is lost
// (errors.go).
//
// The rules of order are the driver's own: a record, a wait and a query are one
// call each. Only the program's functions need more: a stream cannot run them,
// so it tells that it got there and waits (see [held]).
package cuda
