package order

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestV23_observed_reads_count_where_the_operation_stands observes reads of a function
// after later operations were handled.
func TestV23_observed_reads_count_where_the_operation_stands(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	w := k.write(b, is(0, 10))
	f := k.call(a)
	k.read(b, is(20, 30))
	k.c.ObservedReads(f, is(20, 21))
	k.none()
	k.c.ObservedReads(f, is(3, 4))
	got := k.one(Race, w, f)
	require.True(t, got.Second.Seen)
	require.False(t, got.Second.Write)
	later := k.write(b, is(20, 30)) // and for what comes later
	require.True(t, k.one(Race, f, later).First.Seen)
}

// TestV23_observed_reads_are_ordered_both_ways has writes before and behind the function.
func TestV23_observed_reads_are_ordered_both_ways(t *testing.T) {
	k := newKit(t)
	a, b, c := k.free(), k.free(), k.free()
	k.write(a, is(0, 10))
	k.waitStream(b, a)
	f := k.call(b)
	k.waitStream(c, b)
	k.write(c, is(0, 10))
	k.c.ObservedReads(f, is(0, 10))
	k.none()
}
