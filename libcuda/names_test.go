package libcuda

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestU5_a_kernel_is_called_by_its_name_in_the_source(t *testing.T) {
	for symbol, name := range map[string]string{
		"add":                     "add",
		"_Z5saxpyfPKfPfj":         "saxpy",
		"_Z6saxpy2IfEvT_PKS0_":    "saxpy2",
		"_ZN4math6detail4sqrtEPf": "sqrt",
		"_ZN8__main__6smoothB2v1B5cw51cE5ArrayIfLi1E1C7mutable7alignedE": "smooth",
		"_Z":        "_Z",
		"_Z99short": "_Z99short",
	} {
		require.Equal(t, name, shownName(symbol))
	}
}
