package status

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestLayoutIsThatOfTheHeader(t *testing.T) {
	require.EqualValues(t, 64, unsafe.Sizeof(Stream{}))
	require.EqualValues(t, 24, unsafe.Offsetof(Stream{}.Special))
	require.EqualValues(t, 32, unsafe.Offsetof(Stream{}.Order))
}

func TestWordsOfAStreamThatEndedGoOnCounting(t *testing.T) {
	s := New(3)
	s.ID.Store(16)
	s.Special.Store(Failed)
	s.Submitted.Add(5)
	s.Completed.Add(5)
	s.Free()
	var others []*Stream
	next := New(1)
	for next != s {
		others = append(others, next)
		next = New(1)
	}
	require.Zero(t, next.ID.Load())
	require.Zero(t, next.Special.Load())
	require.EqualValues(t, 1, next.Ordinal)
	require.True(t, next.Reached(5), "a place that was reached stays reached")
	require.False(t, next.Reached(6))
	next.Free()
	for _, o := range others {
		o.Free()
	}
}
