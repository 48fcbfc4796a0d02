package libcuda

import "halstream/hal/driver"

// Values in memory that streams write and wait for.

// The operations of a batch. Source: CUDA driver API, CUstreamBatchMemOpType.
const (
	waitValue32  = 1
	writeValue32 = 2
	flushWrites  = 3
	waitValue64  = 4
	writeValue64 = 5
	barrier      = 6
)

const flushFlag = 1 << 30

var valueFunctions = []function{
	{name: "cuStreamWaitValue32", version: 8000, twin: ptsz, call: valueCall(waitValue32)},
	{name: "cuStreamWaitValue32_v2", version: 11070, twin: ptsz, call: valueCall(waitValue32)},
	{name: "cuStreamWriteValue32", version: 8000, twin: ptsz, call: valueCall(writeValue32)},
	{name: "cuStreamWriteValue32_v2", version: 11070, twin: ptsz, call: valueCall(writeValue32)},
	{name: "cuStreamWaitValue64", version: 9000, twin: ptsz, call: valueCall(waitValue64)},
	{name: "cuStreamWaitValue64_v2", version: 11070, twin: ptsz, call: valueCall(waitValue64)},
	{name: "cuStreamWriteValue64", version: 9000, twin: ptsz, call: valueCall(writeValue64)},
	{name: "cuStreamWriteValue64_v2", version: 11070, twin: ptsz, call: valueCall(writeValue64)},
	{name: "cuStreamBatchMemOp", version: 8000, twin: ptsz, call: onStream(0, valueBatch)},
	{name: "cuStreamBatchMemOp_v2", version: 11070, twin: ptsz, call: onStream(0, valueBatch)},
}

func valueCall(kind int) func(c *caller, a *args) error {
	return onStream(0, func(c *caller, s *stream, a *args) error {
		return c.valueOperation(s, kind, a[1], a[2], a.u32(3))
	})
}

func (c *caller) valueOperation(s *stream, kind int, address, value uint64, flags uint32) error {
	if condition := flags &^ flushFlag; condition >= uint32(driver.Conditions) {
		return refuse(invalidValue, "there is no condition %#x on values", condition)
	}
	switch kind {
	case writeValue32:
		return s.WriteValue32(c.t, address, uint32(value))
	case writeValue64:
		return s.WriteValue(c.t, address, value)
	case waitValue64:
		return s.WaitValue(c.t, address, value, driver.Condition(flags&^flushFlag))
	case waitValue32:
		return s.WaitValue32(c.t, address, uint32(value), driver.Condition(flags&^flushFlag))
	case flushWrites, barrier:
		return nil
	}
	return refuse(invalidValue, "there is no operation %d on values", kind)
}

// valueOperation is CUstreamBatchMemOpParams.
type valueOperation struct {
	kind           int32
	_              int32
	address, value uint64
	flags          uint32
	_              uint32
	_              [2]uint64 // an alias of the address, and padding
}

func valueBatch(c *caller, s *stream, a *args) error {
	if a.u32(1) == 0 || a.u32(3) != 0 || a[2] == 0 {
		return refuse(invalidValue, "a batch has operations, and no flags")
	}
	for _, one := range list[valueOperation](a, 2, uint64(a.u32(1))) {
		if err := c.valueOperation(s, int(one.kind), one.address, one.value, one.flags); err != nil {
			return err
		}
	}
	return nil
}
