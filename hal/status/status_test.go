package status

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBitsAreThoseOfTheHeader(t *testing.T) {
	text, err := os.ReadFile("status.h")
	require.NoError(t, err)
	bits := map[string]int{}
	for _, found := range regexp.MustCompile(`#define HALSTREAM_(\w+) (\d+)`).FindAllStringSubmatch(string(text), -1) {
		bits[found[1]], err = strconv.Atoi(found[2])
		require.NoError(t, err)
	}
	require.Equal(t, map[string]int{"LISTENED": Listened, "CAPTURED": Captured}, bits)
}
