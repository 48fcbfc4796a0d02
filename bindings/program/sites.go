package program

// #include "thread.h"
import "C"

import (
	"unsafe"

	"halstream/bindings/sites"
)

// stack is where a call of the library was made: return addresses in the program, the innermost first.
type stack [C.HS_PROGRAM_STACK]uintptr

// stackNow returns the stack of the call that is in progress on the calling thread.
func stackNow() (s stack) {
	C.hs_program_self_stack((*C.uintptr_t)(unsafe.Pointer(&s[0])))
	return s
}

// stacks are those of calls that tools have asked for.
var stacks sites.Numbers[stack]

// site returns the number of the stack of the call that is in progress.
func site() uint32 { return stacks.Of(stackNow()) }

// stackOf returns the stack with a number, an empty one if it is unknown.
func stackOf(number uint32) stack {
	s, _ := stacks.At(number)
	return s
}

// placeOf returns the innermost place of the stack with a number as a text, "" if it is unknown.
func placeOf(number uint32) string {
	if frames := stackOf(number).frames(); len(frames) > 0 {
		return frames[0].text()
	}
	return ""
}

// frames returns the places of a stack, up to main.
func (s stack) frames() []frame {
	var list []frame
	for _, returns := range s {
		if returns == 0 {
			break
		}
		list = append(list, frameAt(returns-1)) // what returns there is the call before it
		if list[len(list)-1].Function == "main" {
			break // what calls it is not the program's
		}
	}
	return list
}
