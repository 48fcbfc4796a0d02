package pybuild

import (
	"halstream/hal"
	"halstream/hal/driver"
)

// contextIDs finds the id of a context and of its default stream.
var contextIDs = map[*hal.Context][2]int64{}

func contextID(c *hal.Context) int64 {
	ids, ok := contextIDs[c]
	if !ok {
		ids = [2]int64{insert(c), insert(c.DefaultStream())}
		contextIDs[c] = ids
	}
	return ids[0]
}

// ContextNew makes a context and makes it current on the calling thread.
func ContextNew(ordinal int64) (id int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) {
		c, err := d.NewContext(caller())
		if err != nil {
			return 0, err
		}
		return contextID(c), nil
	})
}

// ContextPrimary makes the primary context current and counts one more user.
func ContextPrimary(ordinal int64) (id int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) {
		c, err := d.UsePrimary(caller())
		if err != nil {
			return 0, err
		}
		return contextID(c), nil
	})
}

// ContextRelease counts one user of the primary context less; the last one
// waits for its work and ends it.
func ContextRelease(ordinal, force int64) (zero int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) {
		t := caller()
		c, err := d.ReleasePrimary(t, force != 0)
		if err != nil || c == nil {
			return 0, err
		}
		return nothing(end(t, c))
	})
}

// ContextCurrent returns the id of the calling thread's context.
func ContextCurrent() (id int64, err error) {
	defer guard(&err)
	c, err := caller().Context()
	if err != nil {
		return 0, raise(err)
	}
	return contextID(c), nil
}

// ContextSet makes a context current on the calling thread.
func ContextSet(id int64) (zero int64, err error) {
	return on(id, "set context", "context", func(c *hal.Context) (int64, error) {
		return nothing(caller().SetContext(c))
	})
}

// ContextDestroy waits for the context's work and ends it.
func ContextDestroy(id int64) (zero int64, err error) {
	return on(id, "destroy context", "context", func(c *hal.Context) (int64, error) {
		t := caller()
		if err := c.CheckDestroy(t); err != nil {
			return 0, err
		}
		return nothing(end(t, c))
	})
}

func end(t *hal.Thread, c *hal.Context) error {
	p, err := c.Point(t)
	if err != nil {
		return err
	}
	if await(p, driver.Forever) == 0 {
		c.UndoRelease() // a signal handler raised
		return nil
	}
	c.End()
	if ids, ok := contextIDs[c]; ok {
		delete(contextIDs, c)
		remove(ids[0])
		remove(ids[1])
	}
	return nil
}

// ContextDevice returns the ordinal of the context's device.
func ContextDevice(id int64) (ordinal int64, err error) {
	return on(id, "context device", "context", func(c *hal.Context) (int64, error) {
		return int64(c.Device().Ordinal()), nil
	})
}

// ContextDefaultStream returns the id of the context's default stream.
func ContextDefaultStream(id int64) (streamID int64, err error) {
	return on(id, "default stream", "context", func(c *hal.Context) (int64, error) { return contextIDs[c][1], nil })
}

// ContextSync waits for the work on the context's streams; 1 if it is done.
func ContextSync(id, limit int64) (done int64, err error) {
	return on(id, "synchronize context", "context", func(c *hal.Context) (int64, error) {
		p, err := c.Point(caller())
		if err != nil {
			return 0, err
		}
		return outcome(c.Device(), await(p, limit))
	})
}
