package pybuild

/*
#include <unistd.h>

extern char **environ;

static const char *environ_at(int i) { return environ[i]; }
*/
import "C"

import (
	"os"
	"strings"
)

// ownPrefix is what the names of this project's variables begin with.
const ownPrefix = "HALSTREAM_"

// refreshEnviron makes Go's copy of this project's variables, which is from the time when the
// extension was loaded, what they are now.
func refreshEnviron() error {
	now := map[string]string{}
	for i := C.int(0); C.environ_at(i) != nil; i++ {
		name, value, _ := strings.Cut(C.GoString(C.environ_at(i)), "=")
		if strings.HasPrefix(name, ownPrefix) {
			now[name] = value
		}
	}
	for _, text := range os.Environ() {
		name, _, _ := strings.Cut(text, "=")
		if _, set := now[name]; strings.HasPrefix(name, ownPrefix) && !set {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	for name, value := range now {
		if os.Getenv(name) != value {
			if err := os.Setenv(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}
