package pybuild

// #include "exitcode.h"
import "C"

// ExitCode makes the process end with a code from 1 to 255 if its own is 0.
func ExitCode(code int64) (zero int64, err error) {
	C.halstream_exit_code(C.int(code))
	return 0, nil
}
