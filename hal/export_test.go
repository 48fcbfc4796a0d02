package hal

import "halstream/hal/driver"

// BackendStream returns the backend's stream of s.
func BackendStream(s *Stream) driver.Stream { return s.d }

// ContextStreams returns the number of streams that a context keeps.
func ContextStreams(c *Context) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams)
}

// Wake counts n more threads as woken in Next, which do not run yet.
func Wake(n int32) { waking.Add(n) }

// Extents is the list of memory that launches are given.
func (rt *Runtime) Extents() []driver.Extent { return rt.memory.extents() }
