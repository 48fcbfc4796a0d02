package hal

import (
	"sync/atomic"

	"halstream/hal/driver"
)

// Burst counts functions that a stream takes as one operation. Who enqueues and who
// runs them share its word: functions can be added to it, and begun, without a call
// of the runtime until it is sealed. Everything else that is enqueued on the stream
// seals it, and whatever needs to know how many operations there are.
//
// The word may lie in memory of C's, whose code does the same with it: from the
// lowest bit 31 bits for the functions that were added, 31 bits for those that have
// begun, one for Cut and one for Seal.
//
// Contract: H6.
type Burst struct{ word atomic.Uint64 }

const (
	burstBits          = 31
	burstMost   uint64 = 1<<burstBits - 1
	burstBegin  uint64 = 1 << burstBits
	burstCut    uint64 = 1 << 62
	burstSealed uint64 = 1 << 63
)

// Add adds one function and reports whether the burst still took it.
func (b *Burst) Add() bool {
	for {
		w := b.word.Load()
		if w&burstSealed != 0 || w&burstMost == burstMost {
			return false
		}
		if b.word.CompareAndSwap(w, w+1) {
			return true
		}
	}
}

// Begin begins the next function and reports whether there was one. If there is none
// the burst is sealed: the thread that runs it ends it then.
func (b *Burst) Begin() bool {
	for {
		w := b.word.Load()
		next := w + burstBegin
		left := w&burstCut == 0 && w>>burstBits&burstMost != w&burstMost
		if !left {
			next = w | burstSealed
		}
		if b.word.CompareAndSwap(w, next) {
			return left
		}
	}
}

// Seal ends the growth and returns how many functions were added.
func (b *Burst) Seal() uint64 { return b.word.Or(burstSealed) & burstMost }

// Cut seals the burst and drops the functions that have not begun; it returns how
// many they are. Seal still counts them.
func (b *Burst) Cut() uint64 {
	w := b.word.Or(burstSealed | burstCut)
	if w&burstCut != 0 {
		return 0
	}
	return w&burstMost - w>>burstBits&burstMost
}

// Counts returns how many functions were added, and how many of them have begun.
func (b *Burst) Counts() (added, begun uint64) {
	w := b.word.Load()
	return w & burstMost, w >> burstBits & burstMost
}

// burstSink sends a burst to the runtime's queue.
type burstSink struct {
	*Stream
	*Burst
}

var _ driver.Burst = burstSink{}

// HostFuncs enqueues a burst, to which its caller has added one function or more.
// When s gets there, a thread that serves the runtime's queue receives token, and
// runs the functions that b.Begin counts, one after the other. Work that is enqueued
// afterwards waits for those that were added before. growing reports whether more can be added
// with b.Add; it is false, and b is sealed, where each operation has to pass the
// runtime: listeners are notified, the backend or its schedule takes operations one
// by one, the call needs a context that t's caller does not check, or waits for the end.
//
// # Errors
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//   - [ErrNotSupported]: there are several functions in b, and each has to pass
//     the runtime. Nothing was enqueued.
//
// Contract: H1, H3, H6.
func (s *Stream) HostFuncs(t *Thread, token uint64, b *Burst) (growing bool, err error) {
	if err := s.checkEnqueue(t, "call"); err != nil {
		return false, err
	}
	taker := s.takesBursts()
	if taker == nil {
		if b.Seal() > 1 {
			return false, driver.Errorf(driver.NotSupported, "call", "stream %d takes functions one by one now", s.index)
		}
		return false, s.HostFunc(t, token)
	}
	return s.settleBurst(t, b, taker.HostFuncs(token, burstSink{s, b}, false))
}

// takesBursts returns what takes a burst, nil where each operation has to pass the
// runtime.
func (s *Stream) takesBursts() driver.Bursts {
	taker, ok := s.d.(driver.Bursts)
	if !ok || s.listened() || s.dev.rt.Deterministic() || s.capture.Load() != nil {
		return nil
	}
	return taker
}

// settleBurst ends a call that gave the backend a burst, and reports whether it grows.
func (s *Stream) settleBurst(t *Thread, b *Burst, err error) (growing bool, _ error) {
	if err != nil || s.ctx != nil && !t.ChecksContext || s.opts.BlockHost || s.listened() {
		b.Seal()
		return false, s.settle(t, 0, err)
	}
	return true, nil
}

// failed notes the failure of a function of t's burst, which goes on. The function's
// error becomes the stream's; failed reports unreported if it did not, as Done does.
func (k *readyFunc) failed(err *Error) (unreported bool) {
	if k.stream == nil {
		return err != nil
	}
	k.stream.failures.Add(1)
	if err == nil {
		return false
	}
	c, ok := k.c.(driver.BurstCompleter)
	return !k.stream.keeps(ok && c.Fail(err), err)
}

// keeps reports whether a call can still return err, which is the stream's error if
// kept says so.
func (s *Stream) keeps(kept bool, err *Error) bool {
	if kept && s.closed.Load() {
		// Whoever takes the error from the closed stream first disposes of it.
		kept = s.d.Failure() != err
	}
	return kept
}

// Fail notes that one function of the burst that t runs has failed; err as for Done.
//
// Contract: H2, H6.
func (q *Queue) Fail(t *Thread, err *Error) (unreported bool) {
	q.mu.Lock()
	k := t.running
	q.mu.Unlock()
	return k.failed(err)
}

// Yield gives the rest of the burst that t runs back to the queue and takes what is
// most urgent now, which may be the same burst.
//
// Contract: H5, H6.
func (q *Queue) Yield(t *Thread) Task {
	q.mu.Lock()
	k := t.leave()
	if k.stream != nil {
		q.ready.Push(k.stream.level, k)
	}
	return q.take(t, 0, nil)
}
