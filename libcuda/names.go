package libcuda

import (
	"strconv"
	"strings"
)

// shownName returns what reports call a kernel: of the symbol of a C++ function, or of one that numba has compiled, the name
// in the source, without its namespaces and parameters. Source: the Itanium C++ ABI, Mangling.
func shownName(symbol string) string {
	rest, mangled := strings.CutPrefix(symbol, "_Z")
	if !mangled {
		return symbol
	}
	rest = strings.TrimPrefix(rest, "N")
	name := symbol
	for {
		tag := strings.HasPrefix(rest, "B")
		digits := 0
		rest = strings.TrimPrefix(rest, "B")
		for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
			digits++
		}
		size, err := strconv.Atoi(rest[:digits])
		if err != nil || size > len(rest)-digits {
			return name
		}
		if !tag {
			name = rest[digits : digits+size]
		}
		rest = rest[digits+size:]
	}
}
