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
	reduction    = 8
)

// Flags of the operations. Source: CUDA driver API, CUstreamWaitValue_flags, CUstreamWriteValue_flags and
// CUstreamMemoryBarrier_flags.
const (
	flushFlag     = 1 << 30 // with a condition: other devices' writes are seen, which they always are here
	noBarrierFlag = 1       // the write may come before earlier ones, and need not
	deviceBarrier = 1
)

// batchLimit is more operations than a batch has.
const batchLimit = 256

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
	allowed := uint32(0)
	condition := flags &^ flushFlag
	switch kind {
	case writeValue32, writeValue64:
		allowed = noBarrierFlag
	case waitValue32, waitValue64:
		if condition >= uint32(driver.Conditions) {
			return refuse(invalidValue, "there is no condition %#x on values", flags)
		}
		allowed = flags
	case barrier:
		allowed = deviceBarrier
	case flushWrites:
	case reduction:
		return refuse(notSupported, "streams do not add to values in memory; launch a kernel that does")
	default:
		return refuse(invalidValue, "there is no operation %d on values", kind)
	}
	if flags&^allowed != 0 {
		return refuse(invalidValue, "operation %d on values has no flags %#x", kind, flags)
	}
	switch kind {
	case writeValue32:
		return s.WriteValue32(c.t, address, uint32(value))
	case writeValue64:
		return s.WriteValue(c.t, address, value)
	case waitValue64:
		return s.WaitValue(c.t, address, value, driver.Condition(condition))
	case waitValue32:
		return s.WaitValue32(c.t, address, uint32(value), driver.Condition(condition))
	}
	return nil // operations of a stream see what earlier ones have written
}

// valueOperation is CUstreamBatchMemOpParams.
type valueOperation struct {
	kind           int32
	barrierFlags   uint32 // of a barrier or a flush
	address, value uint64
	flags          uint32 // of others
	_              uint32
	_              [2]uint64 // an alias of the address, and padding
}

func valueBatch(c *caller, s *stream, a *args) error {
	if a.u32(1) == 0 || a.u32(1) >= batchLimit || a.u32(3) != 0 || a[2] == 0 {
		return refuse(invalidValue, "a batch has 1 to %d operations, and no flags", batchLimit-1)
	}
	for _, one := range list[valueOperation](a, 2, uint64(a.u32(1))) {
		flags := one.flags
		if one.kind == barrier || one.kind == flushWrites {
			flags = one.barrierFlags
		}
		if err := c.valueOperation(s, int(one.kind), one.address, one.value, flags); err != nil {
			return err
		}
	}
	return nil
}
