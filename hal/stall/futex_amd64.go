package stall

// futexCall is the number of the system call that waits for locks.
const futexCall = "202"
