package hal

import (
	"fmt"
	"hash/fnv"
)

// Fingerprint returns 16 digits that stand for what each thread has called in the run under the
// schedule, whatever turns the threads took.
func (rt *Runtime) Fingerprint() string {
	threads := map[uint32]uint64{}
	for _, c := range rt.Run().Calls {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d %s %d %d", c.Thread, c.Kind, c.Stream, threads[c.Thread])
		threads[c.Thread] = h.Sum64()
	}
	var sum uint64
	for _, h := range threads {
		sum += h
	}
	return fmt.Sprintf("%016x", sum)
}
