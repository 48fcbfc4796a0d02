package hal

import "halstream/hal/driver"

// BackendStream returns the backend's half of a stream.
func BackendStream(s *Stream) driver.Stream { return s.d }

// ContextStreams returns how many streams a context remembers.
func ContextStreams(c *Context) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams)
}
