//go:build !amd64

package stall

// futexCall is the number of the system call that waits for locks (arm64's).
const futexCall = "98"
