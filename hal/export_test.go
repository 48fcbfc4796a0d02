package hal

import "halstream/hal/driver"

// BackendStream returns the backend's half of a stream.
func BackendStream(s *Stream) driver.Stream { return s.d }
