package libcuda

// #include "entry.h"
import "C"

import (
	"maps"
	"math"
	"sync"
)

// userObject is something of the program that it and graphs refer to, with a count of who does.
type userObject struct {
	handle                uintptr
	destructor, destroyed uintptr // a function of the program and its argument

	mu    sync.Mutex
	count int
}

func userObjectOf(handle uintptr) (*userObject, error) {
	return find[*userObject](handle, invalidValue, "user object")
}

// retain fails if the last reference was released meanwhile.
func (o *userObject) retain(count int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.count == 0 {
		return refuse(invalidValue, "the object was destroyed")
	}
	o.count += count
	return nil
}

// release calls the program's destructor after the last reference, on this thread.
func (o *userObject) release(count int) error {
	last, err := o.decrement(count)
	if last {
		C.hs_cuda_destroy(C.uintptr_t(o.destructor), C.uintptr_t(o.destroyed))
	}
	return err
}

// decrement counts references less, and reports whether there are none any more.
func (o *userObject) decrement(count int) (last bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if count > o.count {
		return false, refuse(invalidValue, "there are %d references to the object, not %d", o.count, count)
	}
	o.count -= count
	if o.count == 0 {
		removeHandle(o.handle)
	}
	return o.count == 0, nil
}

// references are how often something refers to user objects.
type references map[*userObject]int

func (r references) release() {
	for o, count := range r {
		_ = o.release(count) // there are as many
	}
}

// releaseOnOwnThread is release for a thread that is not the program's: a destructor gets one of its own, which it may end.
func (r references) releaseOnOwnThread() {
	for o, count := range r {
		if last, _ := o.decrement(count); last {
			C.hs_cuda_destroy_on_own_thread(C.uintptr_t(o.destructor), C.uintptr_t(o.destroyed))
		}
	}
}

// currentReferences returns the references of the graph.
func (g *graph) currentReferences() references {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.objects)
}

// retainedReferences returns the references of the graph, which the caller has now, too.
func (g *graph) retainedReferences() references {
	g.mu.Lock()
	defer g.mu.Unlock()
	for o, count := range g.objects {
		_ = o.retain(count) // the graph refers to it
	}
	return maps.Clone(g.objects)
}

// retainReferences lets the graph refer to what something refers to that the caller has.
func (g *graph) retainReferences(objects references) {
	for o, count := range objects {
		if o.retain(count) == nil {
			g.addReferences(o, count)
		}
	}
}

// addReferences gives the graph references.
func (g *graph) addReferences(o *userObject, count int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.objects == nil {
		g.objects = references{}
	}
	g.objects[o] += count
}

// removeReferences takes references from the graph, and fails if it has not as many.
func (g *graph) removeReferences(o *userObject, count int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch had := g.objects[o]; {
	case count > had:
		return refuse(invalidValue, "the graph has %d references to the object, not %d", had, count)
	case count == had:
		delete(g.objects, o)
	default:
		g.objects[o] -= count
	}
	return nil
}

// countOf returns how many references an argument asks for.
func countOf(a *args, i int) (int, error) {
	if count := a.u32(i); count > 0 && count <= math.MaxInt32 {
		return int(count), nil
	}
	return 0, refuse(invalidValue, "%d references; give 1 to %d", a.u32(i), math.MaxInt32)
}

// Flags of user objects. Source: CUDA driver API, CUuserObject_flags and CUuserObjectRetain_flags.
const (
	noDestructorSync = 1
	moveReferences   = 1
)

var userObjectFunctions = []function{
	{name: "cuUserObjectCreate", version: 11030, call: func(_ *caller, a *args) error {
		if err := a.need(0, 2); err != nil {
			return err
		}
		if a.u32(4) != noDestructorSync {
			return refuse(invalidValue, "an object has the flag %d, not %d", noDestructorSync, a.u32(4))
		}
		count, err := countOf(a, 3)
		if err != nil {
			return err
		}
		o := &userObject{destructor: a.handle(2), destroyed: a.handle(1), count: count}
		o.handle = newHandle(o)
		put(a, 0, o.handle)
		return nil
	}},
	{name: "cuUserObjectRetain", version: 11030, call: onUserObject(0, 1, func(_ *caller, o *userObject, count int, _ *args) error {
		return o.retain(count)
	})},
	{name: "cuUserObjectRelease", version: 11030, call: onUserObject(0, 1, func(_ *caller, o *userObject, count int, _ *args) error {
		return o.release(count)
	})},
	{name: "cuGraphRetainUserObject", version: 11030, call: onUserObject(1, 2, func(_ *caller, o *userObject, count int, a *args) error {
		g, err := find[*graph](a.handle(0), invalidValue, "graph") // also one that a capture makes
		if err != nil {
			return err
		}
		switch a.u32(3) {
		case 0:
			err = o.retain(count)
		case moveReferences:
		default:
			err = refuse(invalidValue, "references have the flag %d or none, not %d", moveReferences, a.u32(3))
		}
		if err == nil {
			g.addReferences(o, count)
		}
		return err
	})},
	{name: "cuGraphReleaseUserObject", version: 11030, call: onUserObject(1, 2, func(_ *caller, o *userObject, count int, a *args) error {
		g, err := find[*graph](a.handle(0), invalidValue, "graph")
		if err == nil {
			err = g.removeReferences(o, count)
		}
		if err != nil {
			return err
		}
		return o.release(count)
	})},
}

// onUserObject returns a function for an object and a count of references, which are arguments.
func onUserObject(object, count int, f func(c *caller, o *userObject, count int, a *args) error) func(c *caller, a *args) error {
	return func(c *caller, a *args) error {
		o, err := userObjectOf(a.handle(object))
		if err != nil {
			return err
		}
		n, err := countOf(a, count)
		if err != nil {
			return err
		}
		return f(c, o, n, a)
	}
}
