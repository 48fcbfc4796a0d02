package libcuda

import (
	"sync"
	"unsafe"

	"halstream/bindings/ids"
)

import "C"

// objects are what the handles of the program name, beside the objects of the process's other bindings.
var objects = &ids.Shared

func newHandle(object any) uintptr { return uintptr(objects.Insert(object)) }
func removeHandle(handle uintptr)  { objects.Remove(int64(handle)) }

// find returns the object of a handle, an error with a code for one of another kind or none.
func find[T any](handle uintptr, code int, noun string) (object T, err error) {
	if object, ok := objects.Find(int64(handle)).(T); ok {
		return object, nil
	}
	return object, refuse(code, "no %s has the handle %#x; it was destroyed, or is none", noun, handle)
}

// cStrings are the texts that the program was given, which stay for as long as the process.
var cStrings struct {
	sync.Mutex
	by map[string]unsafe.Pointer
}

// cString returns a text as C has it.
func cString(text string) unsafe.Pointer {
	cStrings.Lock()
	defer cStrings.Unlock()
	p := cStrings.by[text]
	if p == nil {
		if cStrings.by == nil {
			cStrings.by = map[string]unsafe.Pointer{}
		}
		p = unsafe.Pointer(C.CString(text))
		cStrings.by[text] = p
	}
	return p
}
