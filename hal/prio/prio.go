// Package prio is a queue of a few priority levels, first in first out in each.
package prio

import "math/bits"

// levels is the number of levels; 0 is served first.
const levels = 8

// Queue holds values by level. The zero value is empty. It is not safe for concurrent
// use.
type Queue[T any] struct {
	rings [levels]ring[T]
	mask  uint8
	n     int
}

// Len returns the number of values.
func (q *Queue[T]) Len() int { return q.n }

// Push appends v to its level.
func (q *Queue[T]) Push(level uint8, v T) {
	q.rings[level].push(v)
	q.mask |= 1 << level
	q.n++
}

// best returns the most urgent level that has values, or levels.
func (q *Queue[T]) best() uint8 { return uint8(bits.TrailingZeros16(uint16(q.mask) | 1<<levels)) }

// Pop takes the oldest value of the most urgent level.
func (q *Queue[T]) Pop() (v T, ok bool) {
	if q.n == 0 {
		return v, false
	}
	level := q.best()
	v = q.rings[level].pop()
	if q.rings[level].n == 0 {
		q.mask &^= 1 << level
	}
	q.n--
	return v, true
}

// First returns the oldest value of the most urgent level. There must be one.
func (q *Queue[T]) First() T {
	r := &q.rings[q.best()]
	return r.buf[r.head]
}

// Remove removes the oldest value of a level for which fits returns true, and reports
// whether there was one.
func (q *Queue[T]) Remove(level uint8, fits func(T) bool) bool {
	r := &q.rings[level]
	found := false
	// Popping and pushing each value but the removed one keeps the order.
	for range r.n {
		v := r.pop()
		if !found && fits(v) {
			found = true
			continue
		}
		r.push(v)
	}
	if found {
		q.n--
	}
	if r.n == 0 {
		q.mask &^= 1 << level
	}
	return found
}

// ring is a circular buffer that grows by doubling.
type ring[T any] struct {
	buf  []T
	head int
	n    int
}

func (r *ring[T]) push(v T) {
	if r.n == len(r.buf) {
		grown := make([]T, max(8, 2*len(r.buf)))
		for i := range r.n {
			grown[i] = r.buf[(r.head+i)&(len(r.buf)-1)]
		}
		r.buf, r.head = grown, 0
	}
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = v
	r.n++
}

func (r *ring[T]) pop() T {
	var zero T
	v := r.buf[r.head]
	r.buf[r.head] = zero // the collector must not see it any more
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	return v
}
