// Package cuda is the backend for NVIDIA GPUs: streams and events of the CUDA
// driver, which is loaded at run time.
//
// Nothing is linked and no toolkit is needed. The C half finds the driver's
// functions (symbols.c) and has one C function for each operation (calls_*.c):
// it releases Python's lock, makes the device's primary context current, calls the
// driver, and restores the context that was current. The Go half keeps the state that
// the driver does not report: which operations that need the host its streams
// have reached (blocker.go, poller.go). What it has in common with other vendors' libraries is in hal/vendor:
// which of the driver's events can be recorded again, and the order of operations for listeners.
//
// The rules of order are the driver's own: a record, a wait and a query are one
// call each. Only functions of the program need more, since a stream cannot run them:
// it writes that it has reached the function and waits (see [blocker]).
package cuda
