package ascendcl

// #include "acl/acl_rt_types.h"
import "C"

import "halstream/hal"

// What the flags of AscendCL mean, and which there are.

// What an Ascend A2 or A3 device has.
const (
	MostStreams  = 1984
	MostEvents   = 65536
	MostNotifies = 8192
)

// LeastPriority is the least urgent one of a stream; 0 to it are the core's -7 to 0.
const LeastPriority = 7

// Flags of streams: those that are kept and read back, and those of streams that belong to a model or a chip.
const (
	KeptStreamFlags     = C.ACL_STREAM_FAST_LAUNCH | C.ACL_STREAM_FAST_SYNC | C.ACL_STREAM_HUGE
	HardwareStreamFlags = C.ACL_STREAM_PERSISTENT | C.ACL_STREAM_CPU_SCHEDULE | C.ACL_STREAM_DEVICE_USE_ONLY
)

// Flags of events.
const (
	// UnnamedEventFlag has no name in the headers, and makes an event one that streams can wait for.
	UnnamedEventFlag = 0x4
	// WaitableEventFlags: without one of them no stream can wait for an event outside of captures.
	WaitableEventFlags = C.ACL_EVENT_SYNC | UnnamedEventFlag
	// CommonEventFlags may be combined.
	CommonEventFlags = C.ACL_EVENT_SYNC | C.ACL_EVENT_CAPTURE_STREAM_PROGRESS | UnnamedEventFlag | C.ACL_EVENT_TIME_LINE
	// DefaultEventFlags are those of aclrtCreateEvent: everything but the SYNC bit.
	DefaultEventFlags = CommonEventFlags &^ C.ACL_EVENT_SYNC
	// FutureEventFlags make an event of the older kind one that streams may wait for before it is recorded.
	FutureEventFlags = C.ACL_EVENT_SYNC | C.ACL_EVENT_EXTERNAL
)

// EventFlagsExist reports whether an event can be asked for with flags: of the newer kind (ex), or of the older one.
func EventFlagsExist(flags uint32, ex bool) bool {
	if ex && flags == C.ACL_EVENT_IPC {
		return true
	}
	if !ex && (flags == C.ACL_EVENT_DEVICE_USE_ONLY || flags == C.ACL_EVENT_EXTERNAL) {
		return true
	}
	return flags != 0 && flags&^CommonEventFlags == 0
}

// EventOptions returns what an event with flags is in the core.
func EventOptions(flags uint32, ex bool) hal.EventOptions {
	o := hal.EventOptions{
		Kind:        hal.Standard,
		Timing:      flags&C.ACL_EVENT_TIME_LINE != 0,
		NotWaitable: flags&(WaitableEventFlags|C.ACL_EVENT_EXTERNAL|C.ACL_EVENT_IPC) == 0,
	}
	o.Interprocess = ex && flags == C.ACL_EVENT_IPC
	if !ex {
		o.Kind = hal.Recorded
		if flags&FutureEventFlags != 0 {
			o.Kind = hal.Future
		}
	}
	return o
}

// Capturable reports whether a capture can order work by an event with flags: it is of the newer kind, and streams can wait
// for it.
func Capturable(flags uint32, ex bool) bool { return ex && flags&WaitableEventFlags != 0 }

// JoinedPolicies may be joined to a policy of allocations.
const JoinedPolicies = C.ACL_MEM_TYPE_LOW_BAND_WIDTH | C.ACL_MEM_TYPE_HIGH_BAND_WIDTH | C.ACL_MEM_ACCESS_USER_SPACE_READONLY

// PolicyExists reports whether memory can be asked for with a policy. Each gives the same memory.
func PolicyExists(policy int32) bool {
	kind := policy &^ JoinedPolicies
	return kind >= 0 && kind <= C.ACL_MEM_MALLOC_HUGE1G_ONLY_P2P
}

// CopyEnds returns whether the source and the target of a kind of copy are memory of a device; any if they may be either.
func CopyEnds(kind int32) (source, target, any bool) {
	switch kind {
	case C.ACL_MEMCPY_HOST_TO_HOST:
		return false, false, false
	case C.ACL_MEMCPY_HOST_TO_DEVICE, C.ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE:
		return false, true, false
	case C.ACL_MEMCPY_DEVICE_TO_HOST:
		return true, false, false
	case C.ACL_MEMCPY_DEVICE_TO_DEVICE:
		return true, true, false
	}
	return false, false, true
}

// CopyKindExists reports whether there is a kind of copy.
func CopyKindExists(kind int32) bool {
	return kind >= C.ACL_MEMCPY_HOST_TO_HOST && kind <= C.ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE
}
