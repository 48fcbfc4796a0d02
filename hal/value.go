package hal

import "halstream/hal/driver"

// valueSize is the size and the alignment of values that streams write and wait for.
const valueSize = 8

// ValueAccess says what an operation writes to a value in memory or waits for.
type ValueAccess struct {
	Addr, Value uint64
	// Condition of a wait.
	Condition driver.Condition
}

// WriteValue enqueues a write of 64 bits at an address that is a multiple of 8, in
// pinned memory or memory of the stream's device.
//
// # Errors
//   - [ErrInvalidValue]: another address.
//   - [ErrWrongDevice]: memory of another device.
//   - [ErrNotSupported]: the device cannot.
//   - [ErrClosed], [ErrWrongContext], [ErrNoContext], [ErrInHostFunction].
//
// Contract: M11, M19, V5. Source: CUDA driver API, cuStreamWriteValue64.
func (s *Stream) WriteValue(t *Thread, addr, value uint64) error {
	return s.value(t, "write value", ValueAccess{Addr: addr, Value: value}, s.d.WriteValue)
}

// WaitValue makes work enqueued on s after this call start only when the 64 bits at
// addr were found to meet the condition: they are looked at when s gets there, and
// again after every change, whoever makes it. The host does not block.
//
// # Errors: as for WriteValue, and [ErrInvalidValue] for a condition that is none.
//
// Contract: M11, M19, V5. Source: CUDA driver API, cuStreamWaitValue64.
func (s *Stream) WaitValue(t *Thread, addr, value uint64, c driver.Condition) error {
	return s.value(t, "wait value", ValueAccess{addr, value, c}, s.d.WaitValue)
}

func (s *Stream) value(t *Thread, op string, v ValueAccess, enqueue func(driver.Value) error) error {
	if err := s.checkEnqueue(t, op); err != nil {
		return err
	}
	if v.Condition >= driver.Conditions {
		return driver.Errorf(driver.InvalidValue, op, "there is no condition %d", v.Condition)
	}
	if v.Addr%valueSize != 0 {
		return driver.Errorf(driver.InvalidValue, op, "%#x is not a multiple of the value's %d bytes", v.Addr, valueSize)
	}
	blocks := []*Block{nil}
	if err := s.acquire(op, "an operation on a value", []extent{{"value", v.Addr, valueSize}}, blocks); err != nil {
		return err
	}
	b := blocks[0]
	var err error
	switch {
	case b == nil:
		err = driver.Errorf(driver.InvalidValue, op, "%#x is pageable host memory; use device or pinned memory", v.Addr)
	case b.dev != nil && b.dev != s.dev:
		err = driver.Errorf(driver.WrongDevice, op, "%#x is memory of device %d, and the stream is on device %d",
			v.Addr, b.dev.ordinal, s.dev.ordinal)
	}
	if err != nil {
		return s.using(blocks, func() error { return err })
	}
	on, _ := b.location()
	var id uint32
	if s.listened() {
		o := Operation{Kind: op, Thread: t, Value: &v}
		if access := []Range{{v.Addr, valueSize}}; op == "write value" {
			o.Writes = access
		} else {
			o.Reads = access
		}
		id = s.announce(o)
	}
	return s.settle(t, id, s.using(blocks, func() error {
		return enqueue(driver.Value{Addr: v.Addr, Value: v.Value, Condition: v.Condition, On: on, Tag: id})
	}))
}
