package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

const cellAddr = 1 << 30

func (k *kit) writeValue(s *hal.Stream, value uint64) uint32 {
	return k.do(hal.Operation{Kind: hal.OpWriteValue, Stream: s, Value: &hal.ValueAccess{Addr: cellAddr, Value: value},
		Writes: []hal.Range{{Start: cellAddr, Size: 8}}})
}

func (k *kit) waitValue(s *hal.Stream, c driver.Condition, value uint64) uint32 {
	return k.do(hal.Operation{Kind: hal.OpWaitValue, Stream: s, Value: &hal.ValueAccess{Addr: cellAddr, Value: value, Condition: c},
		Reads: []hal.Range{{Start: cellAddr, Size: 8}}})
}

func TestV5_a_wait_comes_after_the_write_that_ends_it(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	k.write(a, is(0, 10))
	k.writeValue(a, 1)
	late := k.write(a, is(10, 20))
	k.waitValue(b, driver.AtLeast, 1)
	k.read(b, is(0, 10))
	k.none()
	k.one(Race, late, k.read(b, is(10, 20)))
}

func TestV5_a_wait_may_come_before_its_write(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	k.waitValue(b, driver.Equal, 2)
	k.read(b, is(0, 10))
	require.Equal(t, 1, k.c.Stats().Held)
	k.writeValue(a, 1)
	k.write(a, is(0, 10))
	require.Equal(t, 1, k.c.Stats().Held, "1 does not end it")
	k.none()
	k.writeValue(a, 2)
	require.Zero(t, k.c.Stats().Held)
	k.none()
}

func TestV5_several_writes_that_can_have_ended_a_wait(t *testing.T) {
	k := newKit(t)
	a, b, c := k.free(), k.free(), k.free()
	first := k.write(a, is(0, 10))
	k.writeValue(a, 1)
	second := k.write(b, is(10, 20))
	k.waitStream(b, c) // another stream without work: no order
	k.do(hal.Operation{Kind: hal.OpWriteValue, Stream: b, Value: &hal.ValueAccess{Addr: cellAddr, Value: 2}})
	k.waitValue(c, driver.AtLeast, 1)
	k.one(Race, first, k.read(c, is(0, 10)))
	k.one(Race, second, k.read(c, is(10, 20)))
}

func TestV5_of_two_writes_in_order_the_first_can_have_ended_a_wait(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	k.write(a, is(0, 10))
	k.writeValue(a, 1)
	second := k.write(a, is(10, 20))
	k.writeValue(a, 2)
	k.waitValue(b, driver.AtLeast, 1)
	k.read(b, is(0, 10))
	k.none()
	k.one(Race, second, k.read(b, is(10, 20)))
	k.waitValue(b, driver.AtLeast, 2)
	k.read(b, is(10, 20))
	k.none()
}

func TestV5_a_flag_that_is_taken_back_orders_each_round(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	for range 5 {
		k.write(a, is(0, 10))
		k.writeValue(a, 1)
		k.waitValue(b, driver.Equal, 1)
		k.read(b, is(0, 10))
		k.writeValue(b, 0)
		k.waitValue(a, driver.Equal, 0)
	}
	k.none()
}

func TestV5_the_value_itself_is_no_race_but_other_writes_of_it_are(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	k.waitValue(b, driver.Equal, 1)
	w := k.writeValue(a, 1)
	k.none()
	k.one(Race, w, k.do(hal.Operation{Kind: hal.OpFill, Stream: k.free(), Writes: []hal.Range{{Start: cellAddr, Size: 8}}}))
}

func TestV5_a_value_that_came_some_other_way_is_no_false_report(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	k.waitValue(b, driver.Equal, 1)
	k.read(b, is(0, 10))
	k.write(a, is(0, 10))
	k.do(hal.Operation{Kind: hal.OpFill, Stream: a, Writes: []hal.Range{{Start: cellAddr, Size: 8}}})
	k.sync(b)
	require.Zero(t, k.c.Stats().Held)
	k.none()
}

func TestV5_memory_that_is_allocated_again_has_no_value(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	k.writeValue(a, 1)
	k.sync(a)
	block := []hal.Range{{Start: cellAddr, Size: 256}}
	k.host(hal.OpFreeMemory, k.me, hal.Operation{Writes: block})
	k.host(hal.OpNewMemory, k.me, hal.Operation{Writes: block})
	k.waitValue(b, driver.Equal, 1)
	require.Equal(t, 1, k.c.Stats().Held)
	k.c.Finish()
	require.Zero(t, k.c.Stats().Held)
}
