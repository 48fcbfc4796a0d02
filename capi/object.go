package capi

/*
#include "capi.h"
*/
import "C"

import (
	"halstream/bindings/python"
	"halstream/hal"
	"halstream/hal/bestfit"
	"halstream/hal/driver"
)

// How the objects of halstream.h end.

// What halstreamClose closes.
const (
	closesStream = iota
	closesEvent
	closesBlock
)

//export halstreamClose
func halstreamClose(who, id C.int64_t, kind C.int) C.int {
	c := begin(who)
	object := python.Find(int64(id))
	what, op := [...]string{"stream", "event", blockName}[kind], [...]string{"close stream", "close event", "free"}[kind]
	var fits bool
	switch object.(type) {
	case *hal.Stream, python.PerThread:
		fits = kind == closesStream
	case *hal.Event:
		fits = kind == closesEvent
	case *hal.Block, *bestfit.Block:
		fits = kind == closesBlock
	}
	if !fits {
		err := python.Unknown(int64(id), op, what)
		if object == nil && err.Kind == driver.Closed && kind != closesBlock {
			return C.HALSTREAM_OK // it was closed already
		}
		return result(err)
	}
	return result(c.close(int64(id)))
}

// close closes a stream, an event or a block of memory.
func (c call) close(id int64) (err error) {
	switch o := python.Find(id).(type) {
	case *hal.Stream:
		err = o.Close(c.t)
	case python.PerThread:
		err = driver.Errorf(driver.InvalidValue, "close stream", "a default stream cannot be closed")
	case *hal.Event:
		if err = o.Close(c.t); err == nil {
			python.BlockedAt.EventClosed(o)
		}
	case *bestfit.Block:
		o.Free()
	case *hal.Block:
		free := func() error { return o.Release(c.t) }
		if o.Size >= python.SlowAt {
			err = c.outsideLock(free)
		} else {
			err = free()
		}
		if d := o.Device(); err == nil && d != nil {
			if r := d.Runtime(); python.Current().Runtime == r {
				countsOf(r).of[d.Ordinal()].freed.Add(1)
			}
		}
	default:
		return nil
	}
	if err == nil {
		python.Remove(id)
	}
	return err
}
