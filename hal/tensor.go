package hal

import (
	"math"
	"math/bits"
	"unsafe"

	"halstream/hal/driver"
	"halstream/hal/pages"
)

// TensorFields are the fields of DLPack's description of a tensor, as another library
// filled them in.
type TensorFields struct {
	// Major and Minor are the version, 0 for the form that has none.
	Major, Minor uint32
	// Data plus Offset is the address of the first element.
	Data, Offset uint64
	// Shape and Strides are addresses of one number of 64 bits for each dimension.
	// Strides may be 0: the elements are in C order then.
	Dimensions     int32
	Shape, Strides uint64
	Code, Bits     uint8
	Lanes          uint16
}

// Tensor is the checked description of a tensor of another library.
type Tensor struct {
	Start, Size uint64 // of the elements, in bytes
	Shape       []int64
	Strides     []int64 // in elements; nil where they are in C order
}

const (
	tensorMajor = 1 // the supported version of DLPack
	// maxDimensions is above the limit of every library.
	maxDimensions = 64
	// addressesEnd is above every address of memory.
	addressesEnd = 1 << 63
)

// tensorError is the error of a description that is not valid.
func tensorError(format string, args ...any) *Error {
	return driver.Errorf(driver.InvalidValue, "import", "the capsule's tensor is not valid: "+format, args...)
}

// CheckTensor returns the tensor that f describes. It does not access its elements.
//
// # Errors
//   - [ErrInvalidValue]: another version, a description that cannot be true of any
//     memory, or elements that are not one number of whole bytes.
//
// Contract: M20. Source: DLPack 1.0, DLTensor.
func CheckTensor(f TensorFields) (*Tensor, error) {
	if f.Major != tensorMajor && f.Major|f.Minor != 0 {
		return nil, driver.Errorf(driver.InvalidValue, "import",
			"the tensor has version %d.%d of DLPack; %d is understood", f.Major, f.Minor, tensorMajor)
	}
	if f.Dimensions < 0 || f.Dimensions > maxDimensions {
		return nil, tensorError("it has %d dimensions; 0 to %d are possible", f.Dimensions, maxDimensions)
	}
	if f.Dimensions > 0 && f.Shape == 0 {
		return nil, tensorError("it has %d dimensions, and the address of their lengths is NULL", f.Dimensions)
	}
	if f.Lanes != 1 || f.Bits == 0 || f.Bits%8 != 0 {
		return nil, tensorError("its elements (code %d, %d bits, %d lanes) are not one number of whole bytes each",
			f.Code, f.Bits, f.Lanes)
	}
	t := &Tensor{}
	var err error
	if t.Shape, err = numbersAt(f.Shape, f.Dimensions, "lengths"); err != nil {
		return nil, err
	}
	item := uint64(f.Bits / 8)
	count, large, empty := uint64(1), false, false
	for _, n := range t.Shape {
		if n < 0 {
			return nil, tensorError("its shape %d has a negative length", t.Shape)
		}
		high, low := bits.Mul64(count, uint64(n))
		count, large, empty = low, large || high != 0, empty || n == 0
	}
	if f.Strides != 0 {
		if t.Strides, err = numbersAt(f.Strides, f.Dimensions, "strides"); err != nil {
			return nil, err
		}
		if empty || inOrder(t.Shape, t.Strides) {
			t.Strides = nil
		}
	}
	t.Start = f.Data + f.Offset
	if empty {
		return t, nil
	}
	high, size := bits.Mul64(count, item)
	if large || high != 0 || size > math.MaxInt64 {
		return nil, tensorError("its shape %d has more bytes than any memory", t.Shape)
	}
	t.Size = size
	if f.Data == 0 || f.Data+f.Offset < f.Data || !t.within(item) {
		return nil, tensorError("its bytes, from %#x with an offset of %#x, do not lie in memory", f.Data, f.Offset)
	}
	return t, nil
}

// numbersAt returns count numbers at an address that another library gave.
func numbersAt(addr uint64, count int32, what string) ([]int64, error) {
	if count == 0 {
		return nil, nil
	}
	numbers := make([]int64, count)
	to := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(numbers))))
	if !pages.Read(to, addr, uint64(count)*uint64(unsafe.Sizeof(numbers[0]))) {
		return nil, tensorError("its %s at %#x cannot be read", what, addr)
	}
	return numbers, nil
}

// inOrder reports whether strides are those of elements in C order.
func inOrder(shape, strides []int64) bool {
	step := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] != 1 && strides[i] != step {
			return false
		}
		step *= shape[i]
	}
	return true
}

// within reports whether all elements lie at possible addresses.
func (t *Tensor) within(item uint64) bool {
	below, above, fits := uint64(0), item, true
	if t.Strides == nil {
		above = t.Size
	}
	for i, stride := range t.Strides {
		step := uint64(stride)
		if stride < 0 {
			step = -step
		}
		high, reach := bits.Mul64(uint64(t.Shape[i]-1), step)
		more, size := bits.Mul64(reach, item)
		side := &above
		if stride < 0 {
			side = &below
		}
		sum, carry := bits.Add64(*side, size, 0)
		*side = sum
		fits = fits && high == 0 && more == 0 && carry == 0
	}
	end, carry := bits.Add64(t.Start, above, 0)
	return fits && below <= t.Start && carry == 0 && end <= addressesEnd
}

// The device types of DLPack that CheckTensorDevice treats differently.
const (
	tensorOnHost        = 1
	tensorOnCUDA        = 2
	tensorInCUDAPinned  = 3
	tensorInROCmPinned  = 11
	tensorOnExtension   = 12
	tensorInCUDAManaged = 13
	tensorTypesNamed    = 15
)

var tensorDevices = [tensorTypesNamed]string{
	1: "the CPU", 2: "a CUDA device", 3: "pinned memory of CUDA", 4: "an OpenCL device",
	7: "a Vulkan device", 8: "a Metal device", 10: "a ROCm device", 11: "pinned memory of ROCm", 12: "an Ascend device",
	13: "managed memory of CUDA", 14: "a oneAPI device",
}
