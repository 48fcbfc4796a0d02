package vendor

import (
	"slices"
	"sync"
)

// Cache keeps things of a library for later use. To make one or to destroy one, the library may wait for the device,
// whose work may wait for the caller.
type Cache[T any] struct {
	mu   sync.Mutex
	list []T
}

// Put keeps a thing.
func (c *Cache[T]) Put(t T) { c.PutUpTo(-1, t) }

// PutInOrder keeps a thing in front of those that are greater; all are kept in this order then.
func (c *Cache[T]) PutInOrder(t T, compare func(a, b T) int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, _ := slices.BinarySearchFunc(c.list, t, compare)
	c.list = slices.Insert(c.list, i, t)
}

// PutUpTo keeps a thing unless there are most already (no limit if it is negative), and reports whether it did.
func (c *Cache[T]) PutUpTo(most int, t T) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if most >= 0 && len(c.list) >= most {
		return false
	}
	c.list = append(c.list, t)
	return true
}

// Take removes and returns the thing at the end, which was put last.
func (c *Cache[T]) Take() (t T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.list)
	if n == 0 {
		return t, false
	}
	t = c.list[n-1]
	c.list = slices.Delete(c.list, n-1, n)
	return t, true
}

// TakeFirst removes and returns the first thing that is suitable.
func (c *Cache[T]) TakeFirst(suits func(T) bool) (t T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.list, suits)
	if i < 0 {
		return t, false
	}
	t = c.list[i]
	c.list = slices.Delete(c.list, i, i+1)
	return t, true
}

// Len returns how many things are kept.
func (c *Cache[T]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.list)
}

// List returns what is kept.
func (c *Cache[T]) List() []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list)
}

// Surplus removes and returns the things beyond most, those at the end.
func (c *Cache[T]) Surplus(most int) []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) <= most {
		return nil
	}
	removed := slices.Clone(c.list[most:])
	c.list = slices.Delete(c.list, most, len(c.list))
	return removed
}

// All removes and returns everything.
func (c *Cache[T]) All() []T { return c.Surplus(0) }
