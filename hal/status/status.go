// Package status has the bits of the word by which C code of the process sees, without entering Go, what a runtime
// is doing. The word's memory is C's and is never freed.
package status

// #include <stdlib.h>
import "C"

import "sync/atomic"

// Bits of a runtime's word; status.h has those that C code reads.
const (
	Listened = 1 << iota // listeners are notified of operations
	Captured             // a stream captures: calls on it become nodes of a graph
)

// NewWord returns a word of C's memory, 0 at first.
func NewWord() *atomic.Uint32 { return (*atomic.Uint32)(C.calloc(1, 4)) }
