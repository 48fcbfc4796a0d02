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
	require.EqualValues(t, 4, Foreign, "HALSTREAM_FOREIGN")
	require.EqualValues(t, 16, Captured, "HALSTREAM_CAPTURED")
	require.EqualValues(t, 32, Lost, "HALSTREAM_LOST")
}

// again frees words and takes new ones until they are the same.
func again(t *testing.T, s *Stream) *Stream {
	t.Helper()
	s.Free()
	var others []*Stream
	next := New(1)
	for next != s {
		others = append(others, next)
		next = New(1)
	}
	for _, o := range others {
		o.Free()
	}
	return next
}

func TestWordsOfAStreamThatEndedGoOnCounting(t *testing.T) {
	s := New(3)
	s.ID.Store(16)
	s.Special.Store(Failed)
	place := s.Submitted.Add(5) // from where the words' earlier stream left off
	s.Completed.Add(5)
	next := again(t, s)
	require.Zero(t, next.ID.Load())
	require.Zero(t, next.Special.Load())
	require.EqualValues(t, 1, next.Ordinal)
	require.True(t, next.Reached(place), "a place that was reached stays reached")
	require.False(t, next.Reached(place+1))
	next.Free()
}

func TestL5_words_of_work_that_never_ran_begin_with_nothing_pending(t *testing.T) {
	s := New(3)
	s.Submitted.Add(5) // and then its backend was closed
	next := again(t, s)
	require.Equal(t, next.Submitted.Load(), next.Completed.Load())
	next.Free()
}
