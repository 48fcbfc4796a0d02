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

func context(id int64, op string) (*hal.Context, error) {
	if c, ok := find(id).(*hal.Context); ok {
		return c, nil
	}
	return nil, unknown(id, op, "context")
}

// ContextNew makes a context and makes it current on the calling thread.
func ContextNew(ordinal int64) (id int64, err error) {
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	c, err := d.NewContext(caller())
	if err != nil {
		return 0, raise(err)
	}
	return contextID(c), nil
}

// ContextPrimary makes the primary context current and counts one more user.
func ContextPrimary(ordinal int64) (id int64, err error) {
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	c, err := d.UsePrimary(caller())
	if err != nil {
		return 0, raise(err)
	}
	return contextID(c), nil
}

// ContextRelease counts one user of the primary context less; the last one
// waits for its work and ends it.
func ContextRelease(ordinal, force int64) (zero int64, err error) {
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	t := caller()
	c, err := d.ReleasePrimary(t, force != 0)
	if err != nil || c == nil {
		return 0, raise(err)
	}
	return 0, end(t, c)
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
	defer guard(&err)
	c, err := context(id, "set context")
	if err != nil {
		return 0, err
	}
	return 0, raise(caller().SetContext(c))
}

// ContextDestroy waits for the context's work and ends it.
func ContextDestroy(id int64) (zero int64, err error) {
	defer guard(&err)
	c, err := context(id, "destroy context")
	if err != nil {
		return 0, err
	}
	t := caller()
	if err := c.CheckDestroy(t); err != nil {
		return 0, raise(err)
	}
	return 0, end(t, c)
}

func end(t *hal.Thread, c *hal.Context) error {
	p, err := c.Point(t)
	if err != nil {
		return raise(err)
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
	defer guard(&err)
	c, err := context(id, "context device")
	if err != nil {
		return 0, err
	}
	return int64(c.Device().Ordinal()), nil
}

// ContextDefaultStream returns the id of the context's default stream.
func ContextDefaultStream(id int64) (streamID int64, err error) {
	defer guard(&err)
	c, err := context(id, "default stream")
	if err != nil {
		return 0, err
	}
	return contextIDs[c][1], nil
}

// ContextSync waits for the work on the context's streams; 1 if it is done.
func ContextSync(id, limit int64) (done int64, err error) {
	defer guard(&err)
	c, err := context(id, "synchronize context")
	if err != nil {
		return 0, err
	}
	p, err := c.Point(caller())
	if err != nil {
		return 0, raise(err)
	}
	return outcome(c.Device(), await(p, limit))
}
