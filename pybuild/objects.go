package pybuild

/*
#include "dispatch.h"

static int64_t *halstream_ids(int64_t address) { return (int64_t *)(uintptr_t)address; }
*/
import "C"

import (
	"halstream/bindings/python"
	"halstream/hal"
	"halstream/hal/bestfit"
	"halstream/hal/driver"
	"slices"
	"unsafe"
)

// Describe says where a stream, an event or a context stands.
func Describe(id int64) (text string, err error) {
	defer guard(&err)
	switch o := find(id).(type) {
	case *hal.Event:
		return o.Describe(), nil
	case *hal.Context:
		return o.Device().Describe(), nil
	}
	s, err := stream(caller(), id, "describe")
	if err != nil {
		return "", err
	}
	return s.Describe(), nil
}

// IsOpen returns 1 while the id names an object that is not closed. A stream is
// closed, too, when its context ended it.
func IsOpen(id int64) (open int64, err error) {
	defer guard(&err)
	o := find(id)
	if s, ok := o.(*hal.Stream); ok && s.Closed() {
		return 0, nil
	}
	return truth(o != nil), nil
}

// Close gives up the object of an id; an id that has none is closed already.
func Close(id int64) (zero int64, err error) {
	defer guard(&err)
	return 0, closeAs(caller(), id)
}

// Reap is Close for an object whose owner was collected, which may be noticed
// inside a function on a stream. The negative id of a block only counts it as
// freed: functions on streams still see its memory. It returns 1 if the caller is
// to free what halstream_calls_released has, with Python's lock and outside of Go.
func Reap(id int64) (released int64, err error) {
	defer guard(&err)
	return reapAll([]int64{id})
}

// ReapIds is Reap for count ids, which lie at an address, in their order. It closes all of them, also where one fails,
// whose error it returns.
func ReapIds(address, count int64) (released int64, err error) {
	defer guard(&err)
	ids := slices.Clone(unsafe.Slice((*int64)(C.halstream_ids(C.int64_t(address))), count))
	slices.Sort(ids)
	return reapAll(ids)
}

// reapAll is Reap for several ids.
func reapAll(ids []int64) (released int64, err error) {
	if t := caller(); rt != nil {
		rt.ReportTouched(t) // of memory that is known no longer afterwards
	}
	defer reap()() // the collector decides when: no call of the program
	for _, id := range ids {
		tokens, failed := reapOne(id)
		if len(tokens) > 0 {
			C.halstream_calls_release((*C.uint64_t)(&tokens[0]), C.size_t(len(tokens)))
			released = 1
		}
		if err == nil {
			err = failed
		}
	}
	return released, err
}

// reapOne closes an object, and returns the tokens of functions that only it has kept.
func reapOne(id int64) (tokens []uint64, err error) {
	defer guard(&err)
	if id < 0 {
		if b, ok := find(-id).(*hal.Block); ok {
			b.Disown()
		}
		return nil, nil
	}
	switch o := find(id).(type) {
	case *hal.Stream:
		o.LeaveCapture()
	case *hal.Graph:
		tokens = o.Collect()
	case *hal.GraphExec:
		tokens = o.Collect()
	}
	if err = closeAs(nil, id); err != nil {
		return nil, err
	}
	return tokens, nil
}

func closeAs(t *hal.Thread, id int64) (err error) {
	switch o := find(id).(type) {
	case *hal.Stream:
		err = o.Close(t)
		python.EndLines(o)
		keepLost(id, o)
	case *hal.Event:
		if err = o.Close(t); err == nil {
			python.BlockedAt.EventClosed(o)
		}
	case driver.Gate:
		o.Open() // nobody could open it any more
		python.BlockedAt.GateOpened(o)
	case *hal.Queue:
		o.Close()
		delete(queueIDs, o)
	case *notices:
		o.Close()
	case *hal.Block:
		err = slow(o.Size, func() error {
			if t == nil {
				return o.Collect()
			}
			return o.Release(t)
		})
	case *hal.Graph:
		err = o.Close(t)
	case *hal.GraphExec:
		err = o.Close(t)
	case *bestfit.Block:
		o.Free()
	case *bestfit.Cache:
	case *hal.Module:
		if err = o.Close(t); err == nil {
			dropFunctions(o)
		}
	default:
		return nil
	}
	if err == nil {
		remove(id)
	}
	return raise(err)
}

// GateNew blocks a stream until GateOpen.
func GateNew(id int64) (gate int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "gate")
	if err != nil {
		return 0, err
	}
	g, err := s.Gate(t)
	if err != nil {
		return 0, raise(err)
	}
	python.BlockedAt.GateMade(g)
	return insert(g), nil
}

// GateOpen lets the stream go on. Functions on streams may call it.
func GateOpen(id int64) (zero int64, err error) {
	defer guard(&err)
	if g, ok := find(id).(driver.Gate); ok {
		g.Open()
		python.BlockedAt.GateOpened(g)
	}
	return 0, nil
}

// GateOpened returns 1 after GateOpen.
func GateOpened(id int64) (opened int64, err error) {
	defer guard(&err)
	g, ok := find(id).(driver.Gate)
	return truth(!ok || g.Opened()), nil
}
