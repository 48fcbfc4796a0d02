package pybuild

import (
	"syscall"

	"halstream/bindings"
	"halstream/hal"
	"halstream/hal/driver"
)

// notices are the waits of one event loop, and the pipe by which it learns that some may end.
type notices struct {
	*hal.Notices
	read, write int
}

// NoticesNew makes the waits of an event loop.
func NoticesNew() (id int64, err error) {
	defer guard(&err)
	caller()
	var ends [2]int
	syscall.ForkLock.RLock()
	failed := syscall.Pipe(ends[:])
	if failed == nil {
		syscall.CloseOnExec(ends[0])
		syscall.CloseOnExec(ends[1])
	}
	syscall.ForkLock.RUnlock()
	if failed != nil {
		return 0, raise(driver.Errorf(driver.Unknown, "wait in an event loop", "the system makes no pipe: %s", failed))
	}
	_ = syscall.SetNonblock(ends[0], true)
	_ = syscall.SetNonblock(ends[1], true)
	n := &notices{read: ends[0], write: ends[1]}
	one := []byte{1}
	n.Notices = hal.NewNotices(
		func() { _, _ = syscall.Write(n.write, one) }, // a full pipe says it already
		func() {
			_ = syscall.Close(n.write) // first: a write into a pipe that nobody reads is a signal
			_ = syscall.Close(n.read)
		})
	return insert(n), nil
}

// NoticesFile returns the descriptor that can be read from when waits may end. It is
// closed with the notices.
func NoticesFile(id int64) (file int64, err error) {
	return onNotices(id, func(n *notices) (int64, error) { return int64(n.read), nil })
}

// NoticesTake empties the pipe and returns the numbers of the waits that have ended, and
// with a minus those that NoticesEnd has to end: a list.
func NoticesTake(id int64) (numbers string, err error) {
	return onNotices(id, func(n *notices) (string, error) {
		var some [16]byte
		_, _ = syscall.Read(n.read, some[:]) // before Take, after which the next byte is written
		ended, others := n.Take()
		list := make([]int64, 0, len(ended)+len(others))
		for _, number := range ended {
			list = append(list, int64(number))
		}
		for _, number := range others {
			list = append(list, -int64(number))
		}
		return encode(list), nil
	})
}

// NoticesEnd ends a wait if it may end; 1 if it has.
func NoticesEnd(id, number int64) (done int64, err error) {
	return onNotices(id, func(n *notices) (int64, error) {
		ok, err := n.End(uint64(number))
		return truth(ok), err
	})
}

// NoticesDrop ends a wait whatever has become of what it waits for.
func NoticesDrop(id, number int64) (zero int64, err error) {
	return onNotices(id, func(n *notices) (int64, error) {
		n.Drop(uint64(number))
		return 0, nil
	})
}

// NoticesWaiting returns how many waits have not ended.
func NoticesWaiting(id int64) (count int64, err error) {
	return onNotices(id, func(n *notices) (int64, error) { return int64(n.Len()), nil })
}

// StreamNotify begins a wait for all work enqueued so far.
func StreamNotify(streamID, noticesID, number int64) (state int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, streamID, "synchronize")
	if err != nil {
		return 0, err
	}
	return onNotices(noticesID, func(n *notices) (int64, error) {
		return awaited(s.Notify(t, n.Notices, uint64(number)))
	})
}

// EventNotify begins a wait for the latest record.
func EventNotify(eventID, noticesID, number int64) (state int64, err error) {
	defer guard(&err)
	t := caller()
	e, err := event(eventID, "synchronize event")
	if err != nil {
		return 0, err
	}
	return onNotices(noticesID, func(n *notices) (int64, error) {
		return awaited(e.Notify(t, n.Notices, uint64(number)))
	})
}

func awaited(pending bool, err error) (state int64, _ error) {
	switch {
	case !pending:
		return bindings.AwaitDone, err
	case deterministic:
		return bindings.AwaitLook, err
	default:
		return bindings.AwaitNotice, err
	}
}

func onNotices[T any](id int64, f func(*notices) (T, error)) (value T, err error) {
	return on(id, "wait in an event loop", "event loop", f)
}
