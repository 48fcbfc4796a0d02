package main

import "halstream/bindings/ids"

// objects are what the handles of the program name. A handle is an id as a pointer.
var objects ids.Table

// add gives an object its handle.
func add(is any) uintptr { return uintptr(objects.Insert(is)) }

// find returns what a handle names, nil for a handle that does not exist any more or never did.
func find(handle uintptr) any { return objects.Find(int64(handle)) }

// remove gives a handle up; a second time does nothing.
func remove(handle uintptr) { objects.Remove(int64(handle)) }

// each calls f with every object there is.
func each(f func(handle uintptr, is any)) {
	for id, is := range objects.All() {
		f(uintptr(id), is)
	}
}
