package vendor

import (
	"cmp"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestL5_a_cache_keeps_no_more_than_its_limit(t *testing.T) {
	var c Cache[int]
	for i := range 3 {
		require.True(t, c.PutUpTo(3, i))
	}
	require.False(t, c.PutUpTo(3, 3))
	c.Put(4) // which has no limit
	require.Equal(t, []int{0, 1, 2, 4}, c.List())
	require.Equal(t, []int{2, 4}, c.Surplus(2))
	require.Empty(t, c.Surplus(2))
	require.Equal(t, []int{0, 1}, c.All())
	require.Zero(t, c.Len())
}

func TestL5_what_is_taken_from_a_cache_is_there_no_more(t *testing.T) {
	var c Cache[int]
	for i := range 5 {
		c.Put(i)
	}
	last, ok := c.Take()
	require.True(t, ok)
	require.Equal(t, 4, last)
	odd, ok := c.TakeFirst(func(i int) bool { return i%2 == 1 })
	require.True(t, ok)
	require.Equal(t, 1, odd)
	_, ok = c.TakeFirst(func(i int) bool { return i > 9 })
	require.False(t, ok)
	require.Equal(t, []int{0, 2, 3}, c.List())
}

// Of surplus streams those go that were made last, in whatever order they come back.
func TestL5_a_cache_with_an_order_gives_up_the_greatest(t *testing.T) {
	var c Cache[int]
	for _, i := range []int{3, 1, 4, 2} {
		c.PutInOrder(i, cmp.Compare[int])
	}
	require.Equal(t, []int{3, 4}, c.Surplus(2))
	require.Equal(t, []int{1, 2}, c.List())
}

// A closed stream gives its handle back once, whichever threads see that its work is done.
func TestL3_one_of_several_threads_removes_a_closed_stream(t *testing.T) {
	var r Streams[*int]
	kept, removed := new(int), new(int)
	r.Add(kept)
	r.Add(removed)
	var all sync.WaitGroup
	var times atomic.Int64
	for range 8 {
		all.Go(func() {
			if r.Remove(removed) {
				times.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, times.Load())
	require.Equal(t, []*int{kept}, r.All())
}
