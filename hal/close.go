package hal

import "halstream/hal/driver"

// Close ends the use of s. Pending work still runs. Closing again does nothing.
//
// # Errors
//   - [ErrInvalidValue]: s is a default stream.
//   - [ErrInHostFunction].
//
// Contract: L1, L2.
func (s *Stream) Close(t *Thread) error {
	if err := t.checkCaller("close stream"); err != nil {
		return err
	}
	if s.isDefault {
		return driver.Errorf(driver.InvalidValue, "close stream", "a default stream cannot be closed")
	}
	if !s.closed.Load() {
		s.dev.rt.notifyHost(Operation{Kind: OpCloseStream, Stream: s, Thread: t})
	}
	s.close()
	return nil
}

// close is Close without its checks, also for default streams.
func (s *Stream) close() {
	if s.closed.CompareAndSwap(false, true) {
		if c := s.capture.Load(); c != nil && c.legacy == nil {
			c.abandon(s)
		}
		s.noteClosed()
		s.dev.handles.remove(s) // the library may reuse the number at once
		s.leaveQueue(s.queue.Load())
		s.dropFailure()
		s.d.Close()
		if !s.isDefault {
			s.dev.rt.live.Add(-1)
		}
	}
}

// dropFailure returns the token of an error that no call can report any more to
// the threads that run functions, which free what belongs to it.
func (s *Stream) dropFailure() {
	if err := s.d.Failure(); err != nil && err.Token != 0 {
		if p := s.Drop(err.Token); p != nil {
			p.Unpark()
		}
	}
}
