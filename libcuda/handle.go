package libcuda

import (
	"sync"
	"unsafe"

	"halstream/bindings/ids"
)

import "C"

// objects are what the handles of the program name, beside the objects of the process's other bindings.
var objects = &ids.Shared

func add(object any) uintptr { return uintptr(objects.Insert(object)) }
func remove(handle uintptr)  { objects.Remove(int64(handle)) }

// find returns the object of a handle, an error with a code for one of another kind or none.
func find[T any](handle uintptr, code int, what string) (object T, err error) {
	if object, ok := objects.Find(int64(handle)).(T); ok {
		return object, nil
	}
	return object, refuse(code, "no %s has the handle %#x; it was destroyed, or is none", what, handle)
}

// texts are those that the program was given, which stay for as long as the process.
var texts struct {
	sync.Mutex
	by map[string]unsafe.Pointer
}

// kept returns a text as C has it.
func kept(text string) unsafe.Pointer {
	texts.Lock()
	defer texts.Unlock()
	p := texts.by[text]
	if p == nil {
		if texts.by == nil {
			texts.by = map[string]unsafe.Pointer{}
		}
		p = unsafe.Pointer(C.CString(text))
		texts.by[text] = p
	}
	return p
}
