package cuda

/*
#include "calls.h"
*/
import "C"

import "runtime"

// Records on ordered streams. Where such a stream has no other work, a record waits only for the legacy default
// stream, and the driver counts the stream as idle although the record is pending: cuStreamQuery answers success,
// and cuStreamSynchronize returns. So the latest record is looked at, too.

// noteRecord makes m, which was recorded just now, the latest record.
func (s *Stream) noteRecord(m *mark) {
	if !s.ordered {
		return
	}
	var before *mark
	s.mu.Lock()
	s.records++
	if s.recorded != m && m.hold() {
		before, s.recorded = s.recorded, m
	}
	s.mu.Unlock()
	if before != nil {
		before.release()
	}
}

// isLatest reports whether m is the latest record, to which the stream has a reference then.
func (s *Stream) isLatest(m *mark) bool {
	if !s.ordered {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recorded == m
}

// recordReached reports whether the latest record is reached. It is forgotten then.
func (s *Stream) recordReached() (bool, error) {
	if !s.ordered {
		return true, nil
	}
	s.mu.Lock()
	m, records := s.recorded, s.records
	if m == nil || !m.hold() {
		s.mu.Unlock()
		return true, nil
	}
	s.mu.Unlock()
	defer m.release()
	status := C.hs_event_query(s.dev.ctx(), m.event)
	switch code := int(C.hs_code(status)); {
	case code == C.HS_INVALID_VALUE || code == C.HS_CAPTURED_EVENT || code == C.HS_CAPTURE_INVALIDATED:
		// It has become a node of another library's graph, and stands for no work of the stream.
	case code != 0:
		_, err := s.dev.answer(status, "query stream")
		return false, err
	}
	s.mu.Lock()
	latest := s.recorded == m && s.records == records
	if latest {
		s.recorded = nil
	}
	s.mu.Unlock()
	if latest {
		m.release()
	}
	return true, nil
}

// dropRecord forgets the latest record.
func (s *Stream) dropRecord() {
	s.mu.Lock()
	m := s.recorded
	s.recorded = nil
	s.mu.Unlock()
	if m != nil {
		m.release()
	}
}

// idlePoint is the point at which a stream is idle, and its latest record is reached.
type idlePoint struct {
	stream *Stream
	place  uint64
	record *point // nil if there is none
}

// idlePoint returns the point at which all that is enqueued now is done.
func (s *Stream) idlePoint() *idlePoint {
	r := &idlePoint{stream: s, place: s.enqueued.Load()}
	if done, _ := s.recordReached(); done {
		return r
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.recorded; m != nil && m.hold() {
		r.record = &point{mark: m, spin: s.dev.spin(m.flags)}
		r.record.state.Store(watched)
		runtime.SetFinalizer(r.record, func(p *point) { p.drop() })
	}
	return r
}

// Wait implements driver.Point.
func (r *idlePoint) Wait(limit int64) bool {
	clock := stopwatch()
	if !r.awaitStream(limit) {
		return false
	}
	if r.record != nil {
		left := limit
		if limit > 0 {
			left = max(0, limit-clock())
		}
		if !r.record.Wait(left) {
			return false
		}
	}
	r.stream.setReached(r.place)
	return true
}

// awaitStream waits until the driver counts the stream as idle.
func (r *idlePoint) awaitStream(limit int64) bool {
	s := r.stream
	d := s.dev
	var refused refusals
	for {
		l := d.live.Load()
		if l == nil || d.unusable() {
			return d.awaitTasks(limit)
		}
		if s.reached.Load() > r.place {
			return true
		}
		if tail := s.endWithoutHandle(); tail != nil {
			return tail.Wait(limit)
		}
		if !s.enter() {
			continue // closed meanwhile: endWithoutHandle has its point now
		}
		if !l.hold() {
			s.leave()
			return d.awaitTasks(limit)
		}
		status := C.hs_await_stream(l.ctx, s.h, C.int64_t(limit), C.int64_t(d.spin(0)))
		s.leave()
		l.release(d)
		if C.hs_code(status) == codeNotReady {
			if limit >= 0 {
				return false
			}
			continue
		}
		if status != 0 {
			if !refused.again(d, s, status, &limit) {
				return false
			}
			continue
		}
		return true
	}
}
