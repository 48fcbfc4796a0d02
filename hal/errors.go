package hal

import "halstream/hal/driver"

// Error is the error type of every call of this package.
type Error = driver.Error

// One error for each kind, to be matched with errors.Is.
var (
	ErrNotReady       = &Error{Kind: driver.NotReady, Text: "not ready"}
	ErrInvalidHandle  = &Error{Kind: driver.InvalidHandle, Text: "invalid handle"}
	ErrClosed         = &Error{Kind: driver.Closed, Text: "closed"}
	ErrInvalidValue   = &Error{Kind: driver.InvalidValue, Text: "invalid value"}
	ErrInvalidDevice  = &Error{Kind: driver.InvalidDevice, Text: "invalid device"}
	ErrWrongDevice    = &Error{Kind: driver.WrongDevice, Text: "wrong device"}
	ErrWrongContext   = &Error{Kind: driver.WrongContext, Text: "wrong context"}
	ErrNoContext      = &Error{Kind: driver.NoContext, Text: "no context"}
	ErrTiming         = &Error{Kind: driver.TimingDisabled, Text: "timing disabled"}
	ErrCapture        = &Error{Kind: driver.Capture, Text: "capture"}
	ErrUnrecorded     = &Error{Kind: driver.Unrecorded, Text: "unrecorded"}
	ErrNotSupported   = &Error{Kind: driver.NotSupported, Text: "not supported"}
	ErrNotSubscribed  = &Error{Kind: driver.NotSubscribed, Text: "not subscribed"}
	ErrAbsent         = driver.ErrAbsent
	ErrHostFunction   = &Error{Kind: driver.HostFunction, Text: "host function failed"}
	ErrInHostFunction = &Error{Kind: driver.InHostFunction, Text: "in host function"}
	ErrTimeout        = &Error{Kind: driver.Timeout, Text: "timed out"}
	ErrAborted        = &Error{Kind: driver.Aborted, Text: "aborted"}
	ErrDeviceLost     = &Error{Kind: driver.DeviceLost, Text: "device lost"}
	ErrOutOfMemory    = &Error{Kind: driver.OutOfMemory, Text: "out of memory"}
)

// otherRuntimeError rejects an object of another Runtime: a process may open
// several, and nothing orders the work of one against that of another.
func otherRuntimeError(op, what string) *Error {
	return driver.Errorf(driver.WrongDevice, op,
		"%s belongs to another Runtime; only objects of one Runtime can be ordered with each other", what)
}

// closedError rejects the use of a closed object.
func closedError(op, what string) *Error {
	return driver.Errorf(driver.Closed, op, "the %s is closed; create a new one", what)
}
