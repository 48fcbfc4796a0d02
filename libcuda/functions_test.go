package libcuda

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestU2_each_function_is_in_the_table_once(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range functions {
		require.False(t, seen[f.name], f.name)
		seen[f.name] = true
		require.NotNil(t, f.call, f.name)
		require.Positive(t, f.version, f.name)
	}
}

func TestU2_a_function_is_found_by_the_version_that_a_program_is_written_for(t *testing.T) {
	for i := range exports.functions {
		exports.functions[i].address = uintptr(i + 1)
	}
	find := func(name string, version int32, flags uint64) (symbol string, state int32) {
		text := append([]byte(name), 0)
		var address uintptr
		a := args{uint64(uintptr(unsafe.Pointer(&text[0]))), uint64(uintptr(unsafe.Pointer(&address))), uint64(version), flags}
		require.NoError(t, procAddress(&a, &state))
		if address != 0 {
			symbol = exports.functions[address-1].symbol
		}
		return symbol, state
	}
	for _, one := range []struct {
		name    string
		version int32
		flags   uint64
		symbol  string
		state   int32
	}{
		{"cuMemAlloc", 12000, 0, "cuMemAlloc_v2", symbolFound},
		{"cuMemPrefetchAsync", 8000, 0, "cuMemPrefetchAsync", symbolFound},
		{"cuMemPrefetchAsync", 12020, 0, "cuMemPrefetchAsync_v2", symbolFound},
		{"cuMemPrefetchAsync", 12020, perThreadDefault, "cuMemPrefetchAsync_v2_ptsz", symbolFound},
		{"cuMemAlloc", 12000, perThreadDefault, "cuMemAlloc_v2", symbolFound},
		{"cuGraphInstantiate", 12000, 0, "cuGraphInstantiateWithFlags", symbolFound},
		{"cuGraphInstantiate", 11040, 0, "cuGraphInstantiate_v2", symbolFound},
		{"cuGraphInstantiate", 10000, 0, "cuGraphInstantiate", symbolFound},
		{"cuGraphInstantiateWithFlags", 11040, 0, "cuGraphInstantiateWithFlags", symbolFound},
		{"cuStreamBeginCapture", 10000, 0, "cuStreamBeginCapture", symbolFound},
		{"cuStreamBeginCapture", 10010, 0, "cuStreamBeginCapture_v2", symbolFound},
		{"cuCtxDestroy", 2000, 0, "cuCtxDestroy", symbolFound},
		{"cuMemcpyAtoD", 12000, perThreadDefault, "cuMemcpyAtoD_v2_ptds", symbolFound},
		{"cuGraphNodeSetParams", 13050, 0, "cuGraphNodeSetParams", symbolFound},
		{"cuCtxSynchronize", 13000, 0, "cuCtxSynchronize", symbolFound},
		{"cuCtxSynchronize_v2", 13000, 0, "cuCtxSynchronize_v2", symbolFound},
		{"cuGraphAddNode", 11000, 0, "", symbolTooNew},
		{"cuNothing", 12000, 0, "", symbolUnknown},
		{"", 12000, 0, "", symbolUnknown},
	} {
		symbol, state := find(one.name, one.version, one.flags)
		require.Equal(t, one.symbol, symbol, "%v", one)
		require.Equal(t, one.state, state, "%v", one)
	}
}

func TestU2_structures_have_the_sizes_of_the_drivers(t *testing.T) {
	for _, one := range []struct {
		name       string
		is, wanted uintptr
	}{
		{"CUDA_MEMCPY2D", unsafe.Sizeof(copy2D{}), 128}, {"CUDA_MEMCPY3D", unsafe.Sizeof(copy3D{}), 200},
		{"CUDA_MEMSET_NODE_PARAMS", unsafe.Sizeof(fillParameters{}), 40}, {"CUDA_HOST_NODE_PARAMS", unsafe.Sizeof(hostParameters{}), 16},
		{"CUDA_KERNEL_NODE_PARAMS_v1", unsafe.Sizeof(kernelParameters{}), 56},
		{"CUDA_KERNEL_NODE_PARAMS", unsafe.Sizeof(newKernelParameters{}), 72},
		{"CUDA_MEM_ALLOC_NODE_PARAMS", unsafe.Sizeof(allocParameters{}), 120},
		{"CUDA_GRAPH_INSTANTIATE_PARAMS", unsafe.Sizeof(instantiateParameters{}), 32},
		{"CUgraphExecUpdateResultInfo", unsafe.Sizeof(updateResult{}), 24}, {"CUgraphNodeParams", unsafe.Sizeof(nodeParameters{}), 256},
		{"CUlaunchConfig", unsafe.Sizeof(launchConfig{}), 56}, {"CUlaunchAttribute", unsafe.Sizeof(launchAttribute{}), 72},
		{"CUctxCreateParams", unsafe.Sizeof(contextParameters{}), 24}, {"CUmemAccessDesc", unsafe.Sizeof(accessDescriptor{}), 12},
		{"CUstreamBatchMemOpParams", unsafe.Sizeof(valueOperation{}), 48}, {"CUmemLocation", unsafe.Sizeof(location{}), 8},
	} {
		require.Equal(t, one.wanted, one.is, one.name)
	}
}
