package stall

// futexCall is the number of the system call that waits for locks.
const futexCall = "202"

// signalCalls are the numbers of those that only a signal ends: pause and rt_sigsuspend.
var signalCalls = []string{"34", "130"}
