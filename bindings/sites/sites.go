// Package sites gives the places where a program makes its calls numbers, by which the core knows them.
package sites

import "sync"

// Numbers gives values numbers from 1 on, in the order in which they come, and the same one to equal
// values. No value is ever forgotten. Any number of threads may call.
type Numbers[V comparable] struct {
	Most int // how many values get a number; 0 for no bound

	mu     sync.RWMutex
	values []V
	of     map[V]uint32
}

// Of returns the number of a value, 0 if there are too many.
func (n *Numbers[V]) Of(v V) uint32 {
	n.mu.RLock()
	number := n.of[v]
	n.mu.RUnlock()
	if number != 0 {
		return number
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if number = n.of[v]; number != 0 || n.Most > 0 && len(n.values) == n.Most {
		return number
	}
	if n.of == nil {
		n.of = map[V]uint32{}
	}
	n.values = append(n.values, v)
	number = uint32(len(n.values))
	n.of[v] = number
	return number
}

// At returns the value with a number, and whether there is one.
func (n *Numbers[V]) At(number uint32) (v V, known bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if number == 0 || int(number) > len(n.values) {
		return v, false
	}
	return n.values[number-1], true
}
