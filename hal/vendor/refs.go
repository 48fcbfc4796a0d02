package vendor

import "sync/atomic"

// References counts who uses something that is given up with the last reference.
type References struct{ n atomic.Int64 }

// Set is called while nobody else has a reference.
func (r *References) Set(n int64) { r.n.Store(n) }

// Count returns how many references there are.
func (r *References) Count() int64 { return r.n.Load() }

// Hold adds a reference, and reports false if there was none.
func (r *References) Hold() bool {
	for {
		n := r.n.Load()
		if n == 0 {
			return false
		}
		if r.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives a reference up, and reports whether it was the last one.
func (r *References) Release() bool { return r.n.Add(-1) == 0 }
