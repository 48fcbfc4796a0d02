// Command names writes the list of the driver's functions for the library that programs load.
package main

import (
	"fmt"
	"os"

	_ "halstream/bindings/program" // which a call would need
	"halstream/libcuda"
)

func main() {
	for i, name := range libcuda.Names() {
		fmt.Fprintf(os.Stdout, "FUNCTION(%d, %s)\n", i, name)
	}
}
