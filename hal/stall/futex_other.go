//go:build !amd64

package stall

// futexCall is the number of the system call that waits for locks (arm64's).
const futexCall = "98"

// signalCalls are the numbers of those that only a signal ends: rt_sigsuspend. pause is
// ppoll there, which may have a limit and files.
var signalCalls = []string{"133"}
