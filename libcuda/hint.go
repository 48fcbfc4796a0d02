package libcuda

import (
	"maps"
	"sync"
)

// Attributes of launches, of nodes of kernels and of streams. Source: CUDA driver API, CUlaunchAttributeID.
const (
	attributeNone              = 0
	attributeAccessPolicy      = 1
	attributeCooperative       = 2
	attributeSynchronization   = 3
	attributeCluster           = 4
	attributeClusterScheduling = 5
	attributeSerialization     = 6
	attributeProgrammaticEvent = 7
	attributePriority          = 8
	attributeDomainMap         = 9
	attributeDomain            = 10
	attributePreferredCluster  = 11
	attributeCompletionEvent   = 12
	attributeDeviceUpdatable   = 13
	attributeCarveout          = 14
	attributeNVLink            = 16
	attributePortableCluster   = 17
	attributeSharedMode        = 18
)

// Which attributes are hints: with them and without, kernels compute the same in the order of streams, so that they may be
// ignored. They are about caches and the memory of a processor, about which of the blocks that could begin begin first,
// about how early a kernel may begin (it never must), and about how a thread of the host waits.
var (
	streamHints = map[int]bool{
		attributeAccessPolicy: true, attributeSynchronization: true, attributeDomainMap: true, attributeDomain: true, attributeNVLink: true,
	}
	nodeHints = map[int]bool{
		attributeAccessPolicy: true, attributeClusterScheduling: true, attributePriority: true, attributeDomainMap: true,
		attributeDomain: true, attributePreferredCluster: true, attributeCarveout: true, attributeNVLink: true,
		attributePortableCluster: true, attributeSharedMode: true,
	}
)

// hint is CUlaunchAttributeValue: which of its forms it has is the attribute.
type hint [64]byte

// hints are those that a program has set, about which it may ask.
type hints struct {
	mu     sync.Mutex
	values map[int]hint
}

func (h *hints) get(number int) hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.values[number]
}

func (h *hints) set(number int, value hint) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.values == nil {
		h.values = map[int]hint{}
	}
	h.values[number] = value
}

// copyFrom sets the hints that others are.
func (h *hints) copyFrom(others *hints) {
	others.mu.Lock()
	values := maps.Clone(others.values)
	others.mu.Unlock()
	for number, value := range values {
		h.set(number, value)
	}
}
