package libcuda

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	_ "halstream/bindings/program" // what entry.c calls
)

const callsRuntime = `.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope);
.visible .entry nothing() { ret; }
`

func TestU3_the_runtime_of_devices_is_put_behind_programs_that_call_it_once(t *testing.T) {
	text := withRuntime(callsRuntime)
	names, err := kernelNames(text)
	require.NoError(t, err)
	require.Equal(t, []string{"nothing"}, names)
	require.Equal(t, text, withRuntime(text))
	require.Equal(t, 1, strings.Count(linked([]string{text, text}), "cudaCGSynchronize("))
	require.Equal(t, "nothing", withRuntime("nothing"))
}
