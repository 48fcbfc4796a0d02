package pybuild

/*
#include "dlpack.h"
*/
import "C"

import (
	"strconv"
	"strings"
	"unsafe"

	"halstream/hal"
	"halstream/hal/driver"
)

// DlpackLend returns the address of a tensor in the form of DLPack, in C order.
// shape is "3 4"; type is code | bits<<8 | lanes<<16; device is type | id<<32.
// The consumer deletes it on any thread; DlpackReturned then returns token.
// With idle, it returns 0 while operations are pending on the data.
func DlpackLend(token int64, data, dtype, device, flags uint64, versioned, idle bool, shape string) (addr uint64, err error) {
	defer guard(&err)
	if idle {
		r, err := backend()
		if err != nil {
			return 0, err
		}
		if p, err := r.MemoryPoint(caller(), data); p != nil || err != nil {
			return 0, raise(err)
		}
	}
	var few [8]C.int64_t
	lengths := few[:0]
	for text := shape; text != ""; {
		var one string
		one, text, _ = strings.Cut(text, " ")
		n, bad := strconv.ParseInt(one, 10, 64)
		if bad != nil || n < 0 {
			return 0, raise(driver.Errorf(driver.InvalidValue, "export", "%q is no shape", shape))
		}
		lengths = append(lengths, C.int64_t(n))
	}
	var is C.int
	if versioned {
		is = 1
	}
	p := C.halstream_export_tensor(C.int64_t(token), C.uint64_t(data), C.uint64_t(dtype), C.uint64_t(device),
		C.uint64_t(flags), is, unsafe.SliceData(lengths), C.int32_t(len(lengths)))
	if p == 0 {
		return 0, raise(driver.Errorf(driver.OutOfMemory, "export", "no memory for the tensor's description"))
	}
	return uint64(p), nil
}

// giveBack makes DlpackReturned return token.
func giveBack(token int64) { C.halstream_push_token(C.int64_t(token)) }

// DlpackReturned returns the token of a tensor that its consumer deleted, 0 if there is
// none, each token once.
func DlpackReturned() (token int64, err error) {
	defer guard(&err)
	return int64(C.halstream_pop_token()), nil
}

// DlpackAddress returns an address: which is 0 for the destructor of capsules, 1 for
// the number (8 bytes) of tokens that DlpackReturned has not returned yet.
func DlpackAddress(which int64) (addr uint64, err error) {
	defer guard(&err)
	if which == 0 {
		return uint64(C.halstream_capsule_destructor()), nil
	}
	return uint64(C.halstream_pending_tokens()), nil
}

// DlpackTensor returns the contents of the managed tensor at an address: a tensorRecord.
func DlpackTensor(addr uint64, versioned bool) (tensor string, err error) {
	defer guard(&err)
	var is C.int
	if versioned {
		is = 1
	}
	var f C.halstream_tensor_fields
	C.halstream_read_tensor(C.uint64_t(addr), is, &f)
	x, err := hal.CheckTensor(hal.TensorFields{
		Major: uint32(f.major), Minor: uint32(f.minor), Data: uint64(f.data), Offset: uint64(f.offset),
		Dimensions: int32(f.ndim), Shape: uint64(f.shape), Strides: uint64(f.strides),
		Code: uint8(f.code), Bits: uint8(f.bits), Lanes: uint16(f.lanes),
	})
	if err != nil {
		return "", raise(err)
	}
	r := tensorRecord{Deleter: uint64(f.deleter), Flags: uint64(f.flags), Type: int32(f._type), ID: int32(f.id),
		Start: x.Start, Size: x.Size, Code: uint32(f.code), Bits: uint32(f.bits), Shape: append([]int64{}, x.Shape...)}
	if x.Strides != nil {
		r.Strides = &x.Strides
	}
	return encode(r), nil
}

// DlpackCheckDevice fails for a device of DLPack's whose memory the backend's
// devices cannot work on.
func DlpackCheckDevice(kind, number int64) (zero int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		if int64(int32(kind)) != kind || int64(int32(number)) != number {
			return 0, driver.Errorf(driver.InvalidValue, "import", "there is no device %d of DLPack's type %d", number, kind)
		}
		return nothing(r.CheckTensorDevice(int32(kind), int32(number)))
	})
}

// MemPending returns how many streams have pending operations on the block
// that holds an address.
func MemPending(addr uint64) (n int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		return int64(len(r.MemoryUsers(addr))), nil
	})
}

// MemWait waits until the operations that are enqueued on the block that holds
// an address are done; 1 if they are.
func MemWait(addr uint64, limit int64) (done int64, err error) {
	return onRuntime(func(r *hal.Runtime) (done int64, err error) {
		t := caller()
		users := r.MemoryUsers(addr)
		p, err := r.MemoryPoint(t, addr)
		if err != nil {
			return 0, err
		}
		done = await(p, limit)
		for _, s := range users {
			if done, err = outcome(s.Device(), done); err != nil {
				return 0, err
			}
		}
		return done, nil
	})
}

// StreamWaitMem makes a stream wait for the operations that are enqueued on the
// block that holds an address.
func StreamWaitMem(id int64, addr uint64) (zero int64, err error) {
	return onStream(id, "wait for memory", func(t *hal.Thread, s *hal.Stream) (int64, error) {
		return enqueued(t, s, s.WaitMemory(t, addr))
	})
}
