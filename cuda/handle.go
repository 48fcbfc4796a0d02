package cuda

import "halstream/hal/driver"

// handleClosed is set in a stream's number of users when it was closed.
const handleClosed = 1 << 32

// A launch of a graph consists of many operations of which all are enqueued or none: a close
// meanwhile sets closeWanted in a stream's number of threads that enqueue, and the end of the
// last launch, each of which adds oneLaunch, closes the stream.
const (
	closeWanted = 1 << 33
	oneLaunch   = 1 << 34
)

// beginLaunch admits all operations of a launch until endLaunch, however the stream is closed meanwhile.
func (s *Stream) beginLaunch(doing string) error {
	if err := s.usable(doing); err != nil {
		return err
	}
	for {
		n := s.enqueuing.Load()
		if n&(handleClosed|closeWanted) != 0 {
			return closedError(doing)
		}
		if s.enqueuing.CompareAndSwap(n, n+oneLaunch) {
			return nil
		}
	}
}

// endLaunch ends beginLaunch.
func (s *Stream) endLaunch() {
	for {
		n := s.enqueuing.Load()
		left := n - oneLaunch
		if left < oneLaunch && left&closeWanted != 0 {
			left += handleClosed - closeWanted
		}
		if s.enqueuing.CompareAndSwap(n, left) {
			if left == handleClosed {
				s.closeHandle()
			}
			return
		}
	}
}

func closedError(doing string) error {
	return driver.Errorf(driver.Closed, doing, "the stream was closed; use another one")
}

// beginEnqueue admits an operation of the calling thread until endEnqueue. It
// refuses work on a lost device, on another thread's own stream, and on a stream
// that was closed: the driver may have given the handle to a new one. One operation
// may be enqueued as part of another.
func (s *Stream) beginEnqueue(doing string) error {
	if err := s.usable(doing); err != nil {
		return err
	}
	for {
		n := s.enqueuing.Load()
		if n&handleClosed != 0 {
			return closedError(doing)
		}
		if s.enqueuing.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

// endEnqueue ends beginEnqueue. The last thread to leave a closed stream closes
// it: the mark behind its work must not be recorded before the work.
func (s *Stream) endEnqueue() {
	if s.enqueuing.Add(-1) == handleClosed {
		s.closeHandle()
	}
}

// enter keeps the handle alive until leave, and reports false if the stream was
// closed: then its tail is set. Any thread may query a stream while another closes
// it, and the driver may give the same handle to a new stream at once, whose answers
// would be taken for this one's.
func (s *Stream) enter() bool {
	for {
		n := s.users.Load()
		if n&handleClosed != 0 {
			return false
		}
		if s.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *Stream) leave() {
	if s.users.Add(-1) == handleClosed {
		s.destroy()
	}
}

// shut refuses later calls of enter. The last thread that leaves destroys the stream.
func (s *Stream) shut() {
	if s.users.Add(handleClosed) == handleClosed {
		s.destroy()
	}
}

func (s *Stream) destroy() {
	if !s.external {
		s.dev.giveStream(spareStream{s.h, s.nth, s.dealt, streamKind{s.ordered, s.level}, s.end()})
	}
}
