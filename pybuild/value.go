package pybuild

import (
	"halstream/hal/driver"
)

// StreamWriteValue enqueues a write of 64 bits.
func StreamWriteValue(id int64, addr, value uint64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "write value")
	if err != nil {
		return 0, err
	}
	return enqueued(t, s, s.WriteValue(t, addr, value))
}

// StreamWaitValue makes later work wait until the 64 bits at an address meet a
// condition.
func StreamWaitValue(id int64, addr, value uint64, condition int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, id, "wait value")
	if err != nil {
		return 0, err
	}
	if condition < 0 || condition >= int64(driver.Conditions) {
		condition = int64(driver.Conditions) // which hal rejects
	}
	return enqueued(t, s, s.WaitValue(t, addr, value, driver.Condition(condition)))
}
