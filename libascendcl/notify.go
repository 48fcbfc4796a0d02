package main

// #include <stddef.h>
// #include "acl/acl_rt_types.h"
import "C"

import (
	"sync"
	"unsafe"

	"halstream/bindings/ascendcl"
	"halstream/hal"
)

// notify is an event that stays set until a reset, and who may wait for it next.
type notify struct {
	*hal.Event
	mu   sync.Mutex
	turn *hal.Event // recorded where the latest wait has cleared it; nil before the first wait
}

func notifyOf(handle C.uintptr_t) (*notify, error) {
	if handle == 0 {
		return nil, missing("the notify")
	}
	if n, ok := find(uintptr(handle)).(*notify); ok {
		return n, nil
	}
	return nil, refuse(ascendcl.InvalidHandle, "no notify has the handle %#x", handle)
}

//export hsAclCreateNotify
func hsAclCreateNotify(me C.uint32_t, handle *C.uintptr_t, flag C.uint64_t) C.int {
	return call(me, func(c *caller) error {
		if handle == nil {
			return missing("the notify")
		}
		if flag > C.ACL_NOTIFY_DEVICE_USE_ONLY {
			return refuse(ascendcl.ParamInvalid, "the flag is 0 or 1, not %#x", flag)
		}
		now, err := c.t.Context()
		if err != nil {
			return err
		}
		used := 0
		each(func(_ uintptr, is any) {
			if _, ok := is.(*notify); ok {
				used++
			}
		})
		if used >= ascendcl.MostNotifies {
			return refuse(ascendcl.NoNotifyResource, "all %d notifies are in use", ascendcl.MostNotifies)
		}
		d := now.Device()
		e, err := d.Runtime().NewEvent(c.t, d, hal.EventOptions{Kind: hal.Future})
		if err == nil {
			*handle = C.uintptr_t(add(&notify{Event: e}))
		}
		return err
	})
}

// at calls f with the notify and the stream of two handles.
func at(me C.uint32_t, handle, where C.uintptr_t, f func(c *caller, n *notify, s *stream) error) C.int {
	return call(me, func(c *caller) error {
		n, err := notifyOf(handle)
		if err != nil {
			return err
		}
		s, err := c.streamOf(where)
		if err != nil {
			return err
		}
		return f(c, n, s)
	})
}

//export hsAclDestroyNotify
func hsAclDestroyNotify(me C.uint32_t, handle C.uintptr_t) C.int {
	return call(me, func(c *caller) error {
		n, err := notifyOf(handle)
		if err != nil {
			return err
		}
		remove(uintptr(handle))
		n.mu.Lock()
		turn := n.turn
		n.turn = nil
		n.mu.Unlock()
		if turn != nil {
			_ = turn.Close(c.t)
		}
		return n.Close(c.t)
	})
}

//export hsAclRecordNotify
func hsAclRecordNotify(me C.uint32_t, handle, where C.uintptr_t) C.int {
	return at(me, handle, where, func(c *caller, n *notify, s *stream) error {
		return s.Record(c.t, n.Event)
	})
}

//export hsAclWaitAndResetNotify
func hsAclWaitAndResetNotify(me C.uint32_t, handle, where C.uintptr_t, seconds C.uint32_t) C.int {
	return at(me, handle, where, func(c *caller, n *notify, s *stream) error {
		// What refuses the stream's work does so before another wait can come behind this one.
		if err := s.Nop(c.t); err != nil {
			return err
		}
		d := s.Device()
		// One that is waited for before its record is waited for all the same: another thread
		// may call meanwhile.
		next, err := d.Runtime().NewEvent(c.t, d, hal.EventOptions{Kind: hal.Future})
		if err != nil {
			return err
		}
		before := n.follow(next)
		err = n.waitBehind(c.t, s.Stream, before, next, seconds)
		if err != nil && !n.withdraw(before, next) {
			n.pass(c.t, s.Device(), before, next)
		} else if err != nil {
			before = next // nobody waits behind it
		}
		if before != nil {
			_ = before.Close(c.t) // pending waits for it keep their meaning
		}
		return err
	})
}

// follow makes next the event that the next wait waits for, and returns the one before, nil for the first wait.
func (n *notify) follow(next *hal.Event) (before *hal.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, n.turn = n.turn, next
	return before
}

// waitBehind enqueues a wait behind the one that before is of, and records next where it has cleared the notify.
func (n *notify) waitBehind(t *hal.Thread, s *hal.Stream, before, next *hal.Event, seconds C.uint32_t) error {
	if before != nil {
		if err := s.Wait(t, before); err != nil {
			return err
		}
	}
	wait := func() error { return s.Wait(t, n.Event) }
	if seconds != 0 {
		wait = func() error { return s.WaitLimited(t, n.Event, int64(seconds)*1e9) }
	}
	for _, step := range []func() error{
		wait,
		func() error { return s.Reset(t, n.Event) },
		func() error { return s.Record(t, next) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// withdraw undoes follow for a wait that was refused, and reports whether that was possible: no other wait came behind it.
func (n *notify) withdraw(before, next *hal.Event) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.turn != next {
		return false
	}
	n.turn = before
	return true
}

// pass lets the wait behind one that was refused follow the one before it. Its own stream can no longer tell.
func (n *notify) pass(t *hal.Thread, d *hal.Device, before, next *hal.Event) {
	s, err := d.NewStream(t, hal.StreamOptions{NonBlocking: true})
	if err != nil {
		return
	}
	if before != nil { // without this one record of the notify would end both
		_ = s.Wait(t, before)
	}
	_ = s.Record(t, next)
	_ = s.Close(t) // what is pending still runs
}

//export hsAclNotifyBatchReset
func hsAclNotifyBatchReset(me C.uint32_t, handles *C.uintptr_t, count C.size_t) C.int {
	return call(me, func(c *caller) error {
		if handles == nil {
			return missing("the list")
		}
		if count > ascendcl.MostNotifies {
			return refuse(ascendcl.ParamInvalid, "there are at most %d notifies, not %d", ascendcl.MostNotifies, uint64(count))
		}
		var list []*notify
		for _, handle := range unsafe.Slice(handles, int(count)) {
			n, err := notifyOf(handle)
			if err != nil {
				return err
			}
			list = append(list, n)
		}
		return c.aside(func(s *hal.Stream) error {
			for _, n := range list {
				if err := s.Reset(c.t, n.Event); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

//export hsAclGetNotifyId
func hsAclGetNotifyId(me C.uint32_t, handle C.uintptr_t, id *C.uint32_t) C.int {
	return call(me, func(*caller) error {
		if id == nil {
			return missing("the number")
		}
		n, err := notifyOf(handle)
		if err == nil {
			*id = C.uint32_t(n.ID())
		}
		return err
	})
}
