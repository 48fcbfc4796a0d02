package cuda

/*
#include "calls.h"
*/
import "C"

import (
	"fmt"

	"halstream/hal/driver"
)

// valueMemory says in which memory of a device the driver lets streams write and wait for values.
const valueMemory = "use an array of at most 4096 bytes that is allocated without a stream, or pinned memory"

// Else the text above is wrong, and this does not compile.
var _ = [1]int{}[smallMost-4096]

// Numbers of the driver's attributes for operations on values of 64 bits, and for
// the condition that a bit is set in neither.
const (
	attributeValues64   = C.HS_ATTRIBUTE_VALUES_64
	attributeMissingBit = C.HS_ATTRIBUTE_MISSING_BIT
)

// The driver's numbers of the conditions are those of hal; else this does not compile.
var (
	_ = [1]int{}[driver.AtLeast-C.HS_WAIT_GEQ]
	_ = [1]int{}[driver.Equal-C.HS_WAIT_EQ]
	_ = [1]int{}[driver.AnyBit-C.HS_WAIT_AND]
	_ = [1]int{}[driver.MissingBit-C.HS_WAIT_NOR]
)

// noCondition is the condition of a write.
const noCondition = -1

// WriteValue implements driver.Stream.
func (s *Stream) WriteValue(v driver.Value) error { return s.value(v, noCondition, "write value") }

// WaitValue implements driver.Stream.
func (s *Stream) WaitValue(v driver.Value) error {
	const doing = "wait value"
	if v.Condition == driver.MissingBit && s.dev.attribute(attributeMissingBit) == 0 {
		return driver.Errorf(driver.NotSupported, doing, "%s cannot wait for a bit that is set in neither value", s.dev.title())
	}
	return s.value(v, C.int(v.Condition), doing)
}

func (s *Stream) value(v driver.Value, condition C.int, doing string) (err error) {
	d := s.dev
	if err := s.beginEnqueue(doing); err != nil {
		return err
	}
	defer s.endEnqueue()
	f := s.follow(v.Tag, nil)
	defer func() { f.end(d.drv, err) }()
	if !d.memops() || d.attribute(attributeValues64) == 0 {
		return driver.Errorf(driver.NotSupported, doing,
			"it needs stream memory operations of 64 bits, which %s or its driver has not (CUDA 11.7 has them)", d.title())
	}
	if v.On == driver.OnDevice && d.pooled.Has(v.Addr) {
		return driver.Errorf(driver.InvalidValue, doing, "%#x is memory of a pool of the driver's, where no stream can write a value "+
			"or wait for one; %s", v.Addr, valueMemory)
	}
	dev := C.CUdeviceptr(v.Addr) // the same where addresses are unified
	if v.On == driver.Pinned {
		status := C.hs_host_device(d.ctx(), C.uint64_t(v.Addr), &dev)
		if status != 0 && C.hs_code(status) != codeNotSupported {
			return d.check(status, doing)
		}
	}
	if err := s.enqueuedOne(C.hs_value(d.ctx(), s.h, dev, C.uint64_t(v.Value), condition), doing); err != nil {
		if e, ok := err.(*driver.Error); ok && e.Code == C.HS_INVALID_VALUE && v.On == driver.OnDevice {
			explained := *e
			explained.Text += fmt.Sprintf("; memory of a pool and managed memory hold no such values: %s", valueMemory)
			return &explained
		}
		return err
	}
	if condition != noCondition {
		s.awaitsHostAt(s.enqueued.Load())
	}
	return nil
}
