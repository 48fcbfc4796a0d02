package bindings

import (
	"os"
	"strconv"

	"halstream/hal"
	"halstream/hal/driver"
)

// Which backend is used, and with how many threads, as the environment says.

// BackendName returns which backend the environment asks for.
func BackendName() string {
	if name := os.Getenv("HALSTREAM_BACKEND"); name != "" {
		return name
	}
	return "auto"
}

// Open opens a backend, with as many threads for functions of streams as the environment allows. op names the call in
// errors.
func Open(name, op string) (*hal.Runtime, error) {
	limit := 32
	if text := os.Getenv("HALSTREAM_HOST_THREADS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 4096 {
			return nil, driver.Errorf(driver.InvalidValue, op,
				"HALSTREAM_HOST_THREADS is %q; give a whole number from 1 to 4096", text)
		}
		limit = n
	}
	return hal.OpenBackend(name, limit)
}
