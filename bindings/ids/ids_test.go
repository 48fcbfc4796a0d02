package ids_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/bindings/ids"
	"halstream/hal/driver"
)

func TestIDsAreNeverGivenTwice(t *testing.T) {
	var table ids.Table
	seen := map[int64]bool{}
	for range 1000 {
		a, b := table.Insert("a"), table.Insert("b")
		require.False(t, seen[a] || seen[b])
		seen[a], seen[b] = true, true
		require.Zero(t, a%16)
		require.Equal(t, "a", table.Find(a))
		table.Remove(a)
		require.Nil(t, table.Find(a))
		table.Remove(a) // a second time gives no other slot up
		table.Remove(b)
	}
	for _, bad := range []int64{-1, 0, 1, 2, 17, 1 << 62, -1 << 63} {
		require.Nil(t, table.Find(bad), "%d", bad)
		require.Equal(t, driver.InvalidHandle, table.Unknown(bad, "query", "stream").Kind, "%d", bad)
	}
}

func TestAnIdThatWasGivenUpIsClosed(t *testing.T) {
	var table ids.Table
	id := table.Insert("x")
	require.Equal(t, driver.InvalidHandle, table.Unknown(id, "query", "event").Kind, "it is of another type")
	table.Remove(id)
	require.EqualError(t, table.Unknown(id, "query", "stream"), driver.Errorf(driver.Closed, "query",
		"the stream is closed; create a new one").Error())
	require.NotEqual(t, id, table.Insert("y"))
	require.Equal(t, driver.Closed, table.Unknown(id, "query", "stream").Kind)
}

func TestThreadsShareATable(t *testing.T) {
	var table ids.Table
	kept := table.Insert("kept")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range 5000 {
				id := table.Insert(n)
				if table.Find(id) != n {
					t.Errorf("%d is not found by its id", n)
				}
				table.Remove(id)
			}
		})
	}
	all.Wait()
	found := map[int64]any{}
	for id, object := range table.All() {
		found[id] = object
	}
	require.Equal(t, map[int64]any{kept: "kept"}, found)
}
