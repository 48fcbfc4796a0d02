// Command standalone is libhalstream_cuda.so: the functions of package libcuda for programs in other languages than Python,
// which load it through libcuda.so.1.
package main

import (
	"fmt"
	"os"

	"halstream/bindings/program"
	"halstream/bindings/waits"
	"halstream/hal"
	"halstream/hal/driver"
	"halstream/libcuda"
)

func main() {}

func init() {
	libcuda.Use(&libcuda.Process{
		Runtime: func() (*hal.Runtime, error) { return program.Runtime(nil) },
		Thread:  func(number uint32) *hal.Thread { return program.Threads.At(number).T },
		Wait:    wait,
	})
}

// wait waits for a point, and reports a wait that can never end.
func wait(number uint32, rt *hal.Runtime, p driver.Point) error {
	if !program.Reports() {
		p.Wait(driver.Forever)
		return nil
	}
	_, text := program.Await(number, rt, p, waits.Deadline{})
	if text == "" {
		return nil
	}
	fmt.Fprintln(os.Stderr, text)
	return driver.Errorf(driver.Timeout, "synchronize", "the wait can never end")
}
