package driver

import "fmt"

// Kind is the portable name of a failure.
type Kind uint8

// The kinds of failures. Their text forms are the keys of the Python error tree.
const (
	Unknown Kind = iota
	NotReady
	InvalidHandle
	Closed
	InvalidValue
	InvalidDevice
	WrongDevice
	WrongContext
	NoContext
	TimingDisabled
	Unrecorded
	Capture
	NotSupported
	NotSubscribed
	OutOfMemory
	DeviceLost
	BackendAbsent
	HostFunction
	InHostFunction
	Forked // given by the callers of the core, which may not enter it in a forked child
	Timeout
	Aborted
	Interrupted // a handler of a signal raised during a call; the language it is written in has its exception
)

var kindNames = [...]string{
	"unknown", "not_ready", "invalid_handle", "closed", "invalid_value",
	"invalid_device", "wrong_device", "wrong_context", "no_context",
	"timing_disabled", "unrecorded", "capture", "not_supported",
	"not_subscribed", "out_of_memory", "device_lost", "backend_absent",
	"host_function", "in_host_function", "forked", "timeout", "aborted", "interrupted",
}

// String returns the kind as one lower-case word.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[Unknown]
}

// Error is the one error type of the core and its backends.
type Error struct {
	Kind Kind
	// Code is the vendor's number, 0 when no vendor library was involved; of a Capture
	// error on every backend CUDA's number of the rule.
	Code int
	// Op says what the runtime was doing, in the words of the caller.
	Op string
	// Text says what is wrong and what to do about it.
	Text string
	// Token is the host function that failed, 0 for every other failure.
	Token uint64
	// Site is where the program enqueued the function with which a device was lost, 0 if
	// that is not known.
	Site uint32
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("hal: %s: %s", e.Op, e.Text) }

// Is reports whether target is an Error of the same kind, so that
// errors.Is(err, hal.ErrClosed) works for every closed object.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind
}

// ErrAbsent is matched by the error of a backend that cannot be used here.
var ErrAbsent = &Error{Kind: BackendAbsent, Op: "open backend", Text: "absent"}

// Errorf builds an Error.
func Errorf(kind Kind, op, format string, args ...any) *Error {
	return &Error{Kind: kind, Op: op, Text: fmt.Sprintf(format, args...)}
}
