package haltest

import (
	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// tensorLengths returns the address of numbers that live as long as the case.
func tensorLengths(k *Kit, numbers ...int64) uint64 {
	k.T.Helper()
	addr, bytes := k.Pageable(8 * max(1, len(numbers)))
	for i, n := range numbers {
		*word(bytes[8*i:]) = uint64(n)
	}
	return addr
}

var tensorCases = []testCase{
	{"M20_a_tensor_is_taken_as_it_is_described", 0, func(k *Kit) {
		fields := hal.TensorFields{Major: 1, Data: 0x1000, Offset: 0x10, Dimensions: 2, Shape: tensorLengths(k, 3, 4),
			Code: 2, Bits: 32, Lanes: 1}
		x, err := hal.CheckTensor(fields)
		require.NoError(k, err)
		require.Equal(k, hal.Tensor{Start: 0x1010, Size: 48, Shape: []int64{3, 4}}, *x)
		fields.Strides = tensorLengths(k, 4, 1)
		x, err = hal.CheckTensor(fields)
		require.NoError(k, err)
		require.Nil(k, x.Strides, "they are those of C order")
		fields.Strides = tensorLengths(k, -1, 3)
		x, err = hal.CheckTensor(fields)
		require.NoError(k, err)
		require.Equal(k, []int64{-1, 3}, x.Strides)
		fields.Shape, fields.Data, fields.Strides = tensorLengths(k, 0, 1<<62), 0, 0
		x, err = hal.CheckTensor(fields)
		require.NoError(k, err, "a tensor without elements needs no memory")
		require.Zero(k, x.Size)
		fields.Dimensions, fields.Shape, fields.Data = 0, 0, 0x1000
		x, err = hal.CheckTensor(fields)
		require.NoError(k, err)
		require.EqualValues(k, 4, x.Size)
	}},
	{"M20_a_tensor_that_cannot_be_is_refused_with_its_fault", 0, func(k *Kit) {
		for _, c := range []struct {
			why    string
			change func(f *hal.TensorFields)
		}{
			{"version 2.7 of DLPack; 1 is understood", func(f *hal.TensorFields) { f.Major, f.Minor = 2, 7 }},
			{"-1 dimensions; 0 to 64", func(f *hal.TensorFields) { f.Dimensions = -1 }},
			{"65 dimensions", func(f *hal.TensorFields) { f.Dimensions = 65 }},
			{"the address of their lengths is NULL", func(f *hal.TensorFields) { f.Shape = 0 }},
			{"its lengths at 0x8 cannot be read", func(f *hal.TensorFields) { f.Shape = 8 }},
			{"its strides at 0x8 cannot be read", func(f *hal.TensorFields) { f.Strides = 8 }},
			{"negative length", func(f *hal.TensorFields) { f.Shape = tensorLengths(k, 3, -4) }},
			{"more bytes than any memory", func(f *hal.TensorFields) { f.Shape = tensorLengths(k, 1<<40, 1<<40) }},
			{"more bytes than any memory", func(f *hal.TensorFields) { f.Shape = tensorLengths(k, 1<<61, 1) }},
			{"not one number of whole bytes", func(f *hal.TensorFields) { f.Lanes = 4 }},
			{"not one number of whole bytes", func(f *hal.TensorFields) { f.Bits = 4 }},
			{"not one number of whole bytes", func(f *hal.TensorFields) { f.Bits = 0 }},
			{"do not lie in memory", func(f *hal.TensorFields) { f.Data = 0 }},
			{"do not lie in memory", func(f *hal.TensorFields) { f.Offset = 1 << 63 }},
			{"do not lie in memory", func(f *hal.TensorFields) { f.Offset = 1<<64 - 8 }},
			{"do not lie in memory", func(f *hal.TensorFields) { f.Strides = tensorLengths(k, -1<<40, 1) }},
			{"do not lie in memory", func(f *hal.TensorFields) { f.Strides = tensorLengths(k, 1<<62, 1) }},
			{"do not lie in memory", func(f *hal.TensorFields) { f.Strides = tensorLengths(k, -1<<63, 1) }},
		} {
			fields := hal.TensorFields{Major: 1, Data: 0x1000, Dimensions: 2, Shape: tensorLengths(k, 3, 4), Code: 2, Bits: 32, Lanes: 1}
			c.change(&fields)
			_, err := hal.CheckTensor(fields)
			require.ErrorIs(k, err, hal.ErrInvalidValue, c.why)
			require.ErrorContains(k, err, c.why)
		}
	}},
	{"M20_a_tensor_on_a_device_of_another_kind_is_refused", Memory, func(k *Kit) {
		for kind, why := range map[int32]string{8: "a Metal device", 99: "type 99", -1: "type -1", 10: "a ROCm device"} {
			err := k.RT.CheckTensorDevice(kind, 0)
			require.ErrorIs(k, err, hal.ErrInvalidValue)
			require.ErrorContains(k, err, why)
		}
		require.NoError(k, k.RT.CheckTensorDevice(1, 0))
		if k.Has(Handles) {
			require.NoError(k, k.RT.CheckTensorDevice(2, 0))
			require.ErrorIs(k, k.RT.CheckTensorDevice(2, 1000), hal.ErrInvalidDevice)
		} else {
			require.ErrorIs(k, k.RT.CheckTensorDevice(2, 0), hal.ErrInvalidValue)
		}
	}},
}
