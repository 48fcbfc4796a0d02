package ascendcl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/bindings/ascendcl"
	"halstream/hal"
	"halstream/hal/driver"
)

func TestCodesOfTheUpperLayerAreThoseOfItsHeader(t *testing.T) {
	all, err := ascendcl.Numbers("../../libascendcl/package/include/acl")
	require.NoError(t, err)
	by := map[string]int64{}
	for _, n := range all {
		by[n.Name] = n.Is
	}
	for name, code := range map[string]int64{
		"ACL_SUCCESS": ascendcl.Success, "ACL_ERROR_INVALID_PARAM": ascendcl.InvalidParam,
		"ACL_ERROR_REPEAT_INITIALIZE": ascendcl.RepeatInitialize, "ACL_ERROR_INVALID_FILE": ascendcl.InvalidFile,
		"ACL_ERROR_PARSE_FILE": ascendcl.ParseFile, "ACL_ERROR_REPEAT_FINALIZE": ascendcl.RepeatFinalize,
		"ACL_ERROR_INTERNAL_ERROR": ascendcl.LibraryError, "ACL_DT_UNDEFINED": -1, "ACL_EVENT_IPC": 0x40,
		"ACL_ERROR_RT_PARAM_INVALID": ascendcl.ParamInvalid,
	} {
		require.Contains(t, by, name)
		require.Equal(t, code, by[name], name)
	}
	require.NotContains(t, by, "ACL_PKG_VERSION_MAX_SIZE")
}

func TestWhichCodeAnErrorBecomes(t *testing.T) {
	require.Equal(t, ascendcl.InvalidHandle, ascendcl.CodeOf(&hal.Error{Kind: driver.Closed}))
	require.Equal(t, 107032, ascendcl.CodeOf(&hal.Error{Kind: driver.Capture, Code: 902}))
	require.Equal(t, ascendcl.Captured, ascendcl.CodeOf(&hal.Error{Kind: driver.Capture, Code: 1}))
	require.Equal(t, []string{"EE1001", "EE2002", "EE9999"}, []string{ascendcl.Line(107000), ascendcl.Line(207000), ascendcl.Line(507000)})
}

func TestWhatTheFlagsOfAnEventMean(t *testing.T) {
	require.Equal(t, hal.EventOptions{Kind: hal.Recorded, Timing: true}, ascendcl.EventOptions(ascendcl.DefaultEventFlags, false))
	require.Equal(t, hal.EventOptions{Kind: hal.Future}, ascendcl.EventOptions(1, false))
	require.Equal(t, hal.EventOptions{Kind: hal.Standard}, ascendcl.EventOptions(1, true))
	require.Equal(t, hal.EventOptions{Kind: hal.Recorded, NotWaitable: true}, ascendcl.EventOptions(2, false))
	for flags, exist := range map[uint32][2]bool{0: {}, 1: {true, true}, 0xf: {true, true}, 0x10: {true, false},
		0x20: {true, false}, 0x40: {false, true}, 0x11: {}} {
		require.Equal(t, exist, [2]bool{ascendcl.EventFlagsExist(flags, false), ascendcl.EventFlagsExist(flags, true)}, "%#x", flags)
	}
}
