package hal

import (
	"bytes"
	"encoding/binary"
	"os"

	"halstream/hal/driver"
)

// HandleSize is the size of a MemoryHandle.
const HandleSize = 64

// MemoryHandle names memory of a device to other processes of the machine. Only Runtime.OpenMemory understands it,
// and only as long as the process that made it runs.
type MemoryHandle [HandleSize]byte

// handleMark begins each handle; the number is that of its layout.
var handleMark = [8]byte{'h', 'a', 'l', 'm', 'e', 'm', 0, 1}

// handleFields is the layout of a handle: less than 48 bytes, which is what vendors' functions that take it by value
// hand on (see libcuda/shim).
type handleFields struct {
	Mark                  [8]byte
	Process, File         int32
	Started, Offset, Size uint64
	Device                int32
}

// opened is memory of another process: how often the program has opened it. The memory's lock guards the field.
type opened struct {
	handle MemoryHandle
	times  int
}

func (*opened) kind(*Block) string { return "memory of another process" }

func (o *opened) giveBack(b *Block) { b.dev.d.(driver.SharingDevice).Unmap(b.Start, b.Size) }

const opShareMemory = "share memory with other processes"

// SharePoint returns the point at which ShareMemory may be called for an address: nothing that is pending now works on the
// pages of its block any more. It is nil if that is so already.
//
// # Errors: as for ShareMemory.
//
// Contract: M26.
func (rt *Runtime) SharePoint(t *Thread, addr uint64) (driver.Point, error) {
	b, _, err := rt.sharable(t, addr)
	if err != nil {
		return nil, err
	}
	if points := rt.usesOfPages(b); len(points) > 0 {
		return points, nil
	}
	return nil, nil
}

// ShareMemory lets other processes of the machine work on the block of device memory that contains addr, for as long as
// it is allocated here, and returns what OpenMemory finds it by. The first time the memory's pages move to where others
// can map them: nothing may work on them meanwhile, see SharePoint.
//
// # Errors
//   - [ErrInvalidValue]: the address is not one of device memory, the memory is another process's, or pending work uses it.
//   - [ErrNotSupported]: this backend or system cannot.
//   - [ErrOutOfMemory]: the system gives no memory that can be shared.
//   - [ErrInHostFunction].
//
// Contract: M26. Source: CUDA driver API, cuIpcGetMemHandle.
func (rt *Runtime) ShareMemory(t *Thread, addr uint64) (handle MemoryHandle, err error) {
	b, device, err := rt.sharable(t, addr)
	if err != nil {
		return handle, err
	}
	if len(rt.usesOfPages(b)) > 0 {
		return handle, driver.Errorf(driver.InvalidValue, opShareMemory, "pending work uses the memory or its neighbours; wait for it first")
	}
	m, err := device.Share(b.Start, b.Size)
	if err != nil {
		return handle, err
	}
	var written bytes.Buffer
	fields := handleFields{handleMark, int32(m.Process), int32(m.File), m.Started, m.Offset, m.Size, int32(b.dev.ordinal)}
	_ = binary.Write(&written, binary.LittleEndian, &fields)
	copy(handle[:], written.Bytes())
	return handle, nil
}

// sharable returns the block that contains an address and the device that can share it.
func (rt *Runtime) sharable(t *Thread, addr uint64) (*Block, driver.SharingDevice, error) {
	const op = opShareMemory
	if err := t.checkCaller(op); err != nil {
		return nil, nil, err
	}
	rt.memory.mu.Lock()
	b := rt.memory.blocks.Find(addr)
	rt.memory.mu.Unlock()
	if b == nil || b.Kind != DeviceMemory {
		return nil, nil, driver.Errorf(driver.InvalidValue, op, "%#x is not device memory", addr)
	}
	if _, is := b.owner.(*opened); is {
		return nil, nil, driver.Errorf(driver.InvalidValue, op, "%#x is memory of another process, which can share it itself", addr)
	}
	device, ok := b.dev.d.(driver.SharingDevice)
	if !ok {
		return nil, nil, driver.Errorf(driver.NotSupported, op, "not built yet for the %s backend", rt.Name())
	}
	return b, device, nil
}

// usesOfPages returns the points of the pending operations that use any block on the pages of a block.
func (rt *Runtime) usesOfPages(b *Block) (points driver.Points) {
	page := uint64(os.Getpagesize())
	from, to := b.Start&^(page-1), (b.Start+b.Size+page-1)&^(page-1)
	rt.refresh()
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	for one := range rt.memory.blocks.All() {
		if one.Start < to && from < one.Start+one.Size {
			for _, u := range one.users {
				if !u.reached() {
					points = append(points, u.point())
				}
			}
		}
	}
	return points
}

// OpenMemory maps memory that a device has in another process, as memory of the device of that number here, until
// CloseMemory was called as often. A handle that is open already gives the same block.
//
// # Errors
//   - [ErrInvalidValue]: handle is none, or the process that made it has ended or belongs to another user.
//   - [ErrWrongContext]: this process made the handle; it has the memory already.
//   - [ErrWrongDevice]: there is no such device here.
//   - [ErrNotSupported]: this backend or system cannot.
//   - [ErrOutOfMemory]: the system gives no addresses.
//   - [ErrInHostFunction].
//
// Contract: M26. Source: CUDA driver API, cuIpcOpenMemHandle.
func (rt *Runtime) OpenMemory(t *Thread, handle MemoryHandle) (*Block, error) {
	const op = "open memory of another process"
	if err := t.checkCaller(op); err != nil {
		return nil, err
	}
	var fields handleFields
	_ = binary.Read(bytes.NewReader(handle[:]), binary.LittleEndian, &fields)
	switch {
	case fields.Mark != handleMark:
		return nil, driver.Errorf(driver.InvalidValue, op, "this is no handle of shared memory of this version of halstream")
	case int(fields.Process) == os.Getpid():
		return nil, driver.Errorf(driver.WrongContext, op, "this process has shared the memory: use the address that it has")
	case int(fields.Device) >= len(rt.devices):
		return nil, driver.Errorf(driver.WrongDevice, op, "it is memory of device %d; here the last device is %d", fields.Device, len(rt.devices)-1)
	}
	d := rt.devices[fields.Device]
	device, ok := d.d.(driver.SharingDevice)
	if !ok {
		return nil, driver.Errorf(driver.NotSupported, op, "not built yet for the %s backend", rt.Name())
	}
	if b := rt.openAgain(handle, nil); b != nil {
		return b, nil
	}
	m := driver.SharedMemory{Process: int(fields.Process), Started: fields.Started, File: int(fields.File), Offset: fields.Offset, Size: fields.Size}
	addr, err := device.Map(m)
	if err != nil {
		return nil, err
	}
	b := &Block{Start: addr, Size: m.Size, Kind: DeviceMemory, dev: d, owner: &opened{handle: handle}}
	if other := rt.openAgain(handle, b); other != b { // another thread was faster
		device.Unmap(addr, m.Size)
		return other, nil
	}
	rt.notifyHost(Operation{Kind: OpNewMemory, Stream: d.legacy, Thread: t, Writes: []Range{{addr, b.Size}}})
	return b, nil
}

// openAgain counts one more OpenMemory of a handle, and returns its block. If the handle is not open, that is made, which
// it adds, unless made is nil.
func (rt *Runtime) openAgain(handle MemoryHandle, made *Block) *Block {
	rt.memory.mu.Lock()
	defer rt.memory.mu.Unlock()
	for b := range rt.memory.blocks.All() {
		if o, is := b.owner.(*opened); is && o.handle == handle {
			o.times++
			return b
		}
	}
	if made != nil {
		made.owner.(*opened).times++
		rt.insertBlock(made)
	}
	return made
}

// CloseMemory ends one OpenMemory, and returns how many are left. With the last one the memory is unmapped when the
// pending operations that use it are done; no later operation may use it.
//
// # Errors
//   - [ErrInvalidValue]: addr is not the start of memory that OpenMemory has returned and that is open.
//   - [ErrInHostFunction].
//
// Contract: M26. Source: CUDA driver API, cuIpcCloseMemHandle.
func (rt *Runtime) CloseMemory(t *Thread, addr uint64) (left int, err error) {
	const op = "close memory of another process"
	if err := t.checkCaller(op); err != nil {
		return 0, err
	}
	rt.memory.mu.Lock()
	b, err := rt.liveBlockAt(op, addr, func(b *Block) bool { _, is := b.owner.(*opened); return is }, "memory of another process")
	if err == nil {
		o := b.owner.(*opened)
		o.times--
		left = o.times
	}
	rt.memory.mu.Unlock()
	if err != nil || left > 0 {
		return left, err
	}
	return 0, b.Release(t)
}
