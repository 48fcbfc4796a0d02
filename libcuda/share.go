package libcuda

import (
	"encoding/binary"
	"errors"
	"runtime"

	"halstream/hal"
)

// lazyPeerAccess is the only flag of cuIpcOpenMemHandle, and must be set.
const lazyPeerAccess = 1

// shareHandle returns a structure of 64 bytes that the program has passed by value between its first argument and the
// next one: on x86-64 it lies on the stack, behind the arguments in registers, on arm64 a pointer to it is an argument.
// behind is the place of the argument that follows it.
func (a *args) shareHandle() (h hal.ShareHandle, behind int) {
	const registers = 6
	if runtime.GOARCH != "amd64" {
		return *in[hal.ShareHandle](a, 1), 2
	}
	for i := registers; i < len(a); i++ { // no handle has anything in the rest
		binary.NativeEndian.PutUint64(h[8*(i-registers):], a[i])
	}
	return h, 1
}

var shareFunctions = []function{
	{name: "cuIpcGetMemHandle", version: 4010, call: func(c *caller, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		x, err := c.context()
		if err != nil {
			return err
		}
		rt := x.dev.Runtime()
		_, start, _, _ := rt.Lookup(a[1])
		if one := allocationAt(start); one == nil || !one.isSharable() {
			return refuse(invalidValue, "%#x is not memory of cuMemAlloc: other processes cannot have it by such a handle", a[1])
		}
		p, err := rt.SharePoint(c.t, a[1])
		if err != nil {
			return err
		}
		out, address := in[hal.ShareHandle](a, 0), a[1]
		return c.wait(rt, p, func() error {
			h, err := rt.ShareMemory(c.t, address)
			if err == nil {
				*out = h
			}
			return err
		})
	}},
	{name: "cuIpcOpenMemHandle_v2", version: 11000, firstVersion: 4010, call: func(c *caller, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		x, err := c.context()
		if err != nil {
			return err
		}
		handle, behind := a.shareHandle()
		if flags := a.u32(behind); flags != lazyPeerAccess {
			return refuse(invalidValue, "the flags are %#x; CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS is the only one, and needed", flags)
		}
		b, err := x.dev.Runtime().OpenMemory(c.t, handle)
		if err != nil {
			return err
		}
		if allocationAt(b.Start) == nil {
			noteAllocation(b.Start, allocation{x: x, opened: true, size: b.Size})
		}
		put(a, 0, b.Start)
		return nil
	}},
	{name: "cuIpcGetEventHandle", version: 4010, call: func(c *caller, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		e, err := eventOf(a.handle(1))
		if err != nil {
			return err
		}
		h, err := e.Share(c.t, e.x.dev)
		if err == nil {
			*in[hal.ShareHandle](a, 0) = h
		}
		return err
	}},
	{name: "cuIpcOpenEventHandle", version: 4010, call: func(c *caller, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		x, err := c.context()
		if err != nil {
			return err
		}
		handle, _ := a.shareHandle()
		e, err := x.dev.Runtime().OpenEvent(c.t, handle)
		if err == nil {
			put(a, 0, newHandle(&event{e, x, eventInterprocess | eventNoTiming}))
		}
		return err
	}},
	{name: "cuIpcCloseMemHandle", version: 4010, call: func(c *caller, a *args) error {
		rt, err := inUse()
		if err != nil {
			return err
		}
		address := a[0]
		p, err := rt.MemoryPoint(c.t, address)
		if err != nil {
			return err
		}
		return c.wait(rt, p, func() error {
			found, err := endAllocation(address, (*allocation).ofAnotherProcess, func(*allocation) error {
				left, err := rt.CloseMemory(c.t, address)
				if left > 0 {
					return errStillOpen
				}
				return err
			})
			switch {
			case !found:
				return refuse(invalidValue, "%#x is no memory that cuIpcOpenMemHandle has given", address)
			case err == errStillOpen:
				return nil
			}
			return err
		})
	}},
}

// errStillOpen says that memory was opened more often than closed.
var errStillOpen = errors.New("the memory is still open")
