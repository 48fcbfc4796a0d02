package libcuda

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestU3_linked_texts_have_one_head_and_each_weak_function_once(t *testing.T) {
	const head = ".version 7.0\n.target sm_70\n.address_size 64\n"
	const twice = ".weak .func (.param .b32 r) twice(\n\t.param .b32 p\n)\n{\n\t{\n\t}\n\tret;\n}\n"
	const declares = ".extern .func (.param .b32 r) other(\n\t.param .b32 p\n)\n;\n"
	text := linked([]string{
		head + declares + twice + ".visible .entry first() { ret; }\n",
		head + twice + ".weak .func (.param .b32 r) other(\n\t.param .b32 p\n)\n{\n\tret;\n}\n.visible .entry second() { ret; }\n",
	})
	require.Equal(t, 1, strings.Count(text, ".version"))
	require.Equal(t, 1, strings.Count(text, "twice("))
	names, err := kernelNames(text)
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second"}, names)
}
