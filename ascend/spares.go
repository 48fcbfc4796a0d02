package ascend

/*
#include "calls.h"
*/
import "C"

// spare is a stream of the library that no stream of the program uses, with the thread for its functions.
type spare struct {
	h     C.uintptr_t
	level uint8
	line  *C.na_line
}

// maxSpares bounds how many streams a device keeps. It is also the number of report threads that the
// library's documentation advises.
const maxSpares = 32
