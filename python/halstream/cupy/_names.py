"""The public names of cupy (14.2.0) by module, so that what is missing here is named."""

from __future__ import annotations

#: Names of cupy that are NumPy's own objects.
FROM_NUMPY = frozenset(
    """
    AxisError ComplexWarning ModuleDeprecationWarning RankWarning TooHardError
    VisibleDeprecationWarning bool bool_ broadcast_shapes byte cdouble cfloat complex128 complex64
    complex_ complexfloating csingle double dtype e euler_gamma finfo float16 float32 float64
    float_ floating generic get_printoptions half iinfo index_exp inexact inf int16 int32 int64
    int8 int_ intc integer intp isdtype issubdtype iterable long longlong mintypecode nan ndindex
    newaxis number pi printoptions promote_types s_ set_printoptions short signedinteger single
    singlecomplex typename ubyte uint uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong
    unsignedinteger ushort
    """.split()  # noqa: SIM905 (as the other names stand below)
)

#: From each module to its names: one text of them for each kind.
NAMES: dict[str, dict[str, str]] = {
    "cupy": {
        "classes": """
            AxisError ComplexWarning DataSource ElementwiseKernel ModuleDeprecationWarning
            RankWarning RawKernel RawModule ReductionKernel TooHardError
            VisibleDeprecationWarning bool bool_ broadcast byte cdouble cfloat complex128
            complex64 complex_ complexfloating csingle double dtype finfo flatiter float16
            float32 float64 float_ floating format_parser generic half iinfo inexact int16
            int32 int64 int8 int_ intc integer intp long longlong ndarray ndindex number
            poly1d short signedinteger single singlecomplex ubyte ufunc uint uint16 uint32
            uint64 uint8 uintc uintp ulong ulonglong unsignedinteger ushort vectorize
        """,
        "functions": """
            abs absolute acos acosh add all allclose alltrue amax amin angle any append
            apply_along_axis apply_over_axes arange arccos arccosh arcsin arcsinh arctan
            arctan2 arctanh argmax argmin argpartition argsort argwhere around array
            array2string array_equal array_equiv array_repr array_split array_str asanyarray
            asarray asarray_chkfinite ascontiguousarray asfarray asfortranarray asin asinh
            asnumpy astype atan atan2 atanh atleast_1d atleast_2d atleast_3d average bartlett
            base_repr binary_repr bincount bitwise_and bitwise_count bitwise_invert
            bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman
            broadcast_arrays broadcast_shapes broadcast_to byte_bounds can_cast cbrt ceil
            choose clear_memo clip column_stack common_type compress concat concatenate conj
            conjugate convolve copy copysign copyto corrcoef correlate cos cosh count_nonzero
            cov cross cumprod cumproduct cumsum cumulative_prod cumulative_sum deg2rad degrees
            delete diag diag_indices diag_indices_from diagflat diagonal diff digitize disp
            divide divmod dot dsplit dstack ediff1d einsum empty empty_like equal exp exp2
            expand_dims expm1 extract eye fabs fill_diagonal find_common_type fix flatnonzero
            flip fliplr flipud float_power floor floor_divide fmax fmin fmod
            format_float_positional format_float_scientific frexp fromDlpack from_dlpack
            frombuffer fromfile fromfunction fromiter fromstring full full_like fuse gcd
            genfromtxt get_array_module get_array_wrap get_default_memory_pool
            get_default_pinned_memory_pool get_printoptions gradient greater greater_equal
            hamming hanning heaviside histogram histogram2d histogramdd hsplit hstack hypot i0
            identity imag in1d indices inner interp intersect1d invert is_available isclose
            iscomplex iscomplexobj isdtype isfinite isfortran isin isinf isnan isneginf
            isposinf isreal isrealobj isscalar issctype issubclass_ issubdtype issubsctype
            iterable ix_ kaiser kron lcm ldexp left_shift less less_equal lexsort linspace
            load loadtxt log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not
            logical_or logical_xor logspace make_aligned_dtype mask_indices matmul
            matrix_transpose max maximum may_share_memory mean median memoize meshgrid min
            min_scalar_type minimum mintypecode mod modf moveaxis msort multiply nan_to_num
            nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanprod
            nanstd nansum nanvar ndim negative nextafter nonzero not_equal obj2sctype ones
            ones_like outer packbits pad partition percentile permute_dims piecewise place
            poly polyadd polyfit polymul polysub polyval positive pow power printoptions prod
            product promote_types ptp put put_along_axis putmask quantile rad2deg radians
            ravel ravel_multi_index real real_if_close reciprocal remainder repeat require
            reshape resize result_type right_shift rint roll rollaxis roots rot90 round round_
            row_stack safe_eval save savetxt savez savez_compressed sctype2char searchsorted
            select set_printoptions set_string_function setdiff1d setxor1d shape shares_memory
            show_config sign signbit sin sinc sinh size sometrue sort sort_complex split sqrt
            square squeeze stack std subtract sum swapaxes take take_along_axis tan tanh
            tensordot tile trace transpose trapezoid trapz tri tril tril_indices
            tril_indices_from trim_zeros triu triu_indices triu_indices_from true_divide trunc
            typename union1d unique unique_all unique_counts unique_inverse unique_values
            unpackbits unravel_index unwrap vander var vdot vsplit vstack where who zeros
            zeros_like
        """,
        "modules": "cuda exceptions fft lib linalg polynomial random testing typing",
        "values": """
            Inf Infinity NAN NINF NZERO NaN PINF PZERO c_ disable_experimental_feature_warning
            e euler_gamma index_exp inf infty mgrid nan newaxis ogrid pi r_ s_
        """,
    },
    "cupy.cuda": {
        "classes": """
            BaseMemory CFunctionAllocator Device Event ExternalStream Function Graph
            ManagedMemory Memory MemoryAsync MemoryAsyncPool MemoryHook MemoryPointer
            MemoryPool Module PinnedMemory PinnedMemoryPointer PinnedMemoryPool
            PythonFunctionAllocator Stream UnownedMemory
        """,
        "functions": """
            alloc alloc_pinned_memory get_allocator get_cublas_handle get_cuda_path
            get_current_stream get_device_id get_elapsed_time get_hipcc_path
            get_local_runtime_version get_nvcc_path get_rocm_path is_available malloc_async
            malloc_managed profile set_allocator set_pinned_memory_allocator using_allocator
        """,
        "modules": """
            common compiler cub device driver function graph memory memory_hook memory_hooks
            nvrtc nvtx pinned_memory profiler runtime stream texture thrust
        """,
    },
    "cupy.cuda.runtime": {
        "classes": "CUDARuntimeError MemPoolProps PointerAttributes",
        "functions": """
            check_status createSurfaceObject createTextureObject destroySurfaceObject
            destroyTextureObject deviceCanAccessPeer deviceDisablePeerAccess
            deviceEnablePeerAccess deviceGetAttribute deviceGetByPCIBusId
            deviceGetDefaultMemPool deviceGetLimit deviceGetMemPool deviceGetPCIBusId
            deviceSetLimit deviceSetMemPool deviceSynchronize driverGetVersion eventCreate
            eventCreateWithFlags eventDestroy eventElapsedTime eventQuery eventRecord
            eventSynchronize free freeArray freeAsync freeHost getDevice getDeviceCount
            getDeviceProperties graphDebugDotPrint graphDestroy graphExecDestroy
            graphInstantiate graphLaunch graphUpload hostAlloc hostRegister hostUnregister
            ipcCloseMemHandle ipcGetEventHandle ipcGetMemHandle ipcOpenEventHandle
            ipcOpenMemHandle launchHostFunc malloc malloc3DArray mallocArray mallocAsync
            mallocFromPoolAsync mallocManaged memAdvise memGetInfo memPoolCreate
            memPoolDestroy memPoolGetAttribute memPoolSetAttribute memPoolTrimTo
            memPrefetchAsync memcpy memcpy2D memcpy2DAsync memcpy2DFromArray
            memcpy2DFromArrayAsync memcpy2DToArray memcpy2DToArrayAsync memcpy3D memcpy3DAsync
            memcpyAsync memcpyPeer memcpyPeerAsync memset memsetAsync pointerGetAttributes
            pointerGetMemoryType profilerStart profilerStop runtimeGetVersion setDevice
            streamAddCallback streamBeginCapture streamCreate streamCreateWithFlags
            streamCreateWithPriority streamDestroy streamEndCapture streamGetFlags
            streamGetPriority streamIsCapturing streamQuery streamSynchronize streamWaitEvent
        """,
        "values": """
            CUDA_C_16F CUDA_C_32F CUDA_C_64F CUDA_C_8I CUDA_C_8U CUDA_R_16BF CUDA_R_16F
            CUDA_R_32F CUDA_R_64F CUDA_R_8I CUDA_R_8U cudaAddressModeBorder
            cudaAddressModeClamp cudaAddressModeMirror cudaAddressModeWrap cudaArrayDefault
            cudaArraySurfaceLoadStore cudaChannelFormatKindFloat cudaChannelFormatKindNone
            cudaChannelFormatKindSigned cudaChannelFormatKindUnsigned cudaCpuDeviceId
            cudaDevAttrAsyncEngineCount cudaDevAttrCanFlushRemoteWrites
            cudaDevAttrCanMapHostMemory cudaDevAttrCanUseHostPointerForRegisteredMem
            cudaDevAttrClockRate cudaDevAttrComputeMode cudaDevAttrComputePreemptionSupported
            cudaDevAttrConcurrentKernels cudaDevAttrConcurrentManagedAccess
            cudaDevAttrCooperativeLaunch cudaDevAttrCooperativeMultiDeviceLaunch
            cudaDevAttrDirectManagedMemAccessFromHost cudaDevAttrEccEnabled
            cudaDevAttrGPUDirectRDMAFlushWritesOptions cudaDevAttrGPUDirectRDMASupported
            cudaDevAttrGPUDirectRDMAWritesOrdering cudaDevAttrGlobalL1CacheSupported
            cudaDevAttrGlobalMemoryBusWidth cudaDevAttrGpuOverlap
            cudaDevAttrHostNativeAtomicSupported cudaDevAttrHostRegisterReadOnlySupported
            cudaDevAttrHostRegisterSupported cudaDevAttrIntegrated cudaDevAttrIsMultiGpuBoard
            cudaDevAttrKernelExecTimeout cudaDevAttrL2CacheSize
            cudaDevAttrLocalL1CacheSupported cudaDevAttrManagedMemory cudaDevAttrMaxBlockDimX
            cudaDevAttrMaxBlockDimY cudaDevAttrMaxBlockDimZ
            cudaDevAttrMaxBlocksPerMultiprocessor cudaDevAttrMaxGridDimX
            cudaDevAttrMaxGridDimY cudaDevAttrMaxGridDimZ cudaDevAttrMaxPitch
            cudaDevAttrMaxRegistersPerBlock cudaDevAttrMaxRegistersPerMultiprocessor
            cudaDevAttrMaxSharedMemoryPerBlock cudaDevAttrMaxSharedMemoryPerBlockOptin
            cudaDevAttrMaxSharedMemoryPerMultiprocessor cudaDevAttrMaxSurface1DLayeredLayers
            cudaDevAttrMaxSurface1DLayeredWidth cudaDevAttrMaxSurface1DWidth
            cudaDevAttrMaxSurface2DHeight cudaDevAttrMaxSurface2DLayeredHeight
            cudaDevAttrMaxSurface2DLayeredLayers cudaDevAttrMaxSurface2DLayeredWidth
            cudaDevAttrMaxSurface2DWidth cudaDevAttrMaxSurface3DDepth
            cudaDevAttrMaxSurface3DHeight cudaDevAttrMaxSurface3DWidth
            cudaDevAttrMaxSurfaceCubemapLayeredLayers cudaDevAttrMaxSurfaceCubemapLayeredWidth
            cudaDevAttrMaxSurfaceCubemapWidth cudaDevAttrMaxTexture1DLayeredLayers
            cudaDevAttrMaxTexture1DLayeredWidth cudaDevAttrMaxTexture1DLinearWidth
            cudaDevAttrMaxTexture1DMipmappedWidth cudaDevAttrMaxTexture1DWidth
            cudaDevAttrMaxTexture2DGatherHeight cudaDevAttrMaxTexture2DGatherWidth
            cudaDevAttrMaxTexture2DHeight cudaDevAttrMaxTexture2DLayeredHeight
            cudaDevAttrMaxTexture2DLayeredLayers cudaDevAttrMaxTexture2DLayeredWidth
            cudaDevAttrMaxTexture2DLinearHeight cudaDevAttrMaxTexture2DLinearPitch
            cudaDevAttrMaxTexture2DLinearWidth cudaDevAttrMaxTexture2DMipmappedHeight
            cudaDevAttrMaxTexture2DMipmappedWidth cudaDevAttrMaxTexture2DWidth
            cudaDevAttrMaxTexture3DDepth cudaDevAttrMaxTexture3DDepthAlt
            cudaDevAttrMaxTexture3DHeight cudaDevAttrMaxTexture3DHeightAlt
            cudaDevAttrMaxTexture3DWidth cudaDevAttrMaxTexture3DWidthAlt
            cudaDevAttrMaxTextureCubemapLayeredLayers cudaDevAttrMaxTextureCubemapLayeredWidth
            cudaDevAttrMaxTextureCubemapWidth cudaDevAttrMaxThreadsPerBlock
            cudaDevAttrMaxThreadsPerMultiProcessor
            cudaDevAttrMaxTimelineSemaphoreInteropSupported cudaDevAttrMemoryClockRate
            cudaDevAttrMemoryPoolSupportedHandleTypes cudaDevAttrMemoryPoolsSupported
            cudaDevAttrMultiGpuBoardGroupID cudaDevAttrMultiProcessorCount
            cudaDevAttrPageableMemoryAccess cudaDevAttrPageableMemoryAccessUsesHostPageTables
            cudaDevAttrPciBusId cudaDevAttrPciDeviceId cudaDevAttrPciDomainId
            cudaDevAttrReserved92 cudaDevAttrReserved93 cudaDevAttrReserved94
            cudaDevAttrReservedSharedMemoryPerBlock
            cudaDevAttrSingleToDoublePrecisionPerfRatio cudaDevAttrSparseCudaArraySupported
            cudaDevAttrStreamPrioritiesSupported cudaDevAttrSurfaceAlignment
            cudaDevAttrTccDriver cudaDevAttrTextureAlignment cudaDevAttrTexturePitchAlignment
            cudaDevAttrTotalConstantMemory cudaDevAttrUnifiedAddressing cudaDevAttrWarpSize
            cudaFilterModeLinear cudaFilterModePoint
            cudaGraphDebugDotFlagsConditionalNodeParams cudaGraphDebugDotFlagsEventNodeParams
            cudaGraphDebugDotFlagsExtSemasSignalNodeParams
            cudaGraphDebugDotFlagsExtSemasWaitNodeParams cudaGraphDebugDotFlagsHandles
            cudaGraphDebugDotFlagsHostNodeParams cudaGraphDebugDotFlagsKernelNodeAttributes
            cudaGraphDebugDotFlagsKernelNodeParams cudaGraphDebugDotFlagsMemcpyNodeParams
            cudaGraphDebugDotFlagsMemsetNodeParams cudaGraphDebugDotFlagsVerbose
            cudaInvalidDeviceId cudaIpcMemLazyEnablePeerAccess
            cudaLimitDevRuntimePendingLaunchCount cudaLimitDevRuntimeSyncDepth
            cudaLimitMallocHeapSize cudaLimitMaxL2FetchGranularity cudaLimitPrintfFifoSize
            cudaLimitStackSize cudaMemAdviseSetAccessedBy cudaMemAdviseSetPreferredLocation
            cudaMemAdviseSetReadMostly cudaMemAdviseUnsetAccessedBy
            cudaMemAdviseUnsetPreferredLocation cudaMemAdviseUnsetReadMostly
            cudaMemAllocationTypePinned cudaMemAttachGlobal cudaMemAttachHost
            cudaMemAttachSingle cudaMemHandleTypeNone cudaMemHandleTypePosixFileDescriptor
            cudaMemLocationTypeDevice cudaMemLocationTypeHost cudaMemLocationTypeHostNuma
            cudaMemLocationTypeHostNumaCurrent cudaMemLocationTypeInvalid
            cudaMemPoolAttrReleaseThreshold cudaMemPoolAttrReservedMemCurrent
            cudaMemPoolAttrReservedMemHigh cudaMemPoolAttrUsedMemCurrent
            cudaMemPoolAttrUsedMemHigh cudaMemPoolReuseAllowInternalDependencies
            cudaMemPoolReuseAllowOpportunistic cudaMemPoolReuseFollowEventDependencies
            cudaMemoryTypeDevice cudaMemoryTypeHost cudaReadModeElementType
            cudaReadModeNormalizedFloat cudaResourceTypeArray cudaResourceTypeLinear
            cudaResourceTypeMipmappedArray cudaResourceTypePitch2D eventBlockingSync
            eventDefault eventDisableTiming eventInterprocess hostAllocDefault hostAllocMapped
            hostAllocPortable hostAllocWriteCombined is_hip memcpyDefault memcpyDeviceToDevice
            memcpyDeviceToHost memcpyHostToDevice memcpyHostToHost memoryTypeDevice
            memoryTypeHost memoryTypeManaged memoryTypeUnregistered streamCaptureModeGlobal
            streamCaptureModeRelaxed streamCaptureModeThreadLocal streamCaptureStatusActive
            streamCaptureStatusInvalidated streamCaptureStatusNone streamDefault streamLegacy
            streamNonBlocking streamPerThread
        """,
    },
    "cupy.cuda.driver": {
        "classes": "CUDADriverError",
        "functions": """
            check_status ctxCreate ctxDestroy ctxGetCurrent ctxGetDevice ctxSetCurrent
            devicePrimaryCtxRelease funcGetAttribute funcSetAttribute get_build_version
            launchCooperativeKernel launchKernel linkAddData linkAddFile linkComplete
            linkCreate linkDestroy moduleGetFunction moduleGetGlobal moduleLoad moduleLoadData
            moduleUnload occupancyMaxActiveBlocksPerMultiprocessor
            occupancyMaxPotentialBlockSize streamGetCtx
        """,
        "values": """
            CUDA_ERROR_INVALID_VALUE CU_AD_FORMAT_FLOAT CU_AD_FORMAT_HALF
            CU_AD_FORMAT_SIGNED_INT16 CU_AD_FORMAT_SIGNED_INT32 CU_AD_FORMAT_SIGNED_INT8
            CU_AD_FORMAT_UNSIGNED_INT16 CU_AD_FORMAT_UNSIGNED_INT32 CU_AD_FORMAT_UNSIGNED_INT8
            CU_FUNC_ATTRIBUTE_BINARY_VERSION CU_FUNC_ATTRIBUTE_CACHE_MODE_CA
            CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK CU_FUNC_ATTRIBUTE_NUM_REGS
            CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT CU_FUNC_ATTRIBUTE_PTX_VERSION
            CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES CU_JIT_CACHE_MODE CU_JIT_ERROR_LOG_BUFFER
            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES CU_JIT_FALLBACK_STRATEGY CU_JIT_FAST_COMPILE
            CU_JIT_FMA CU_JIT_FTZ CU_JIT_GENERATE_DEBUG_INFO CU_JIT_GENERATE_LINE_INFO
            CU_JIT_GLOBAL_SYMBOL_ADDRESSES CU_JIT_GLOBAL_SYMBOL_COUNT
            CU_JIT_GLOBAL_SYMBOL_NAMES CU_JIT_INFO_LOG_BUFFER
            CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES CU_JIT_INPUT_CUBIN CU_JIT_INPUT_FATBINARY
            CU_JIT_INPUT_LIBRARY CU_JIT_INPUT_NVVM CU_JIT_INPUT_OBJECT CU_JIT_INPUT_PTX
            CU_JIT_LOG_VERBOSE CU_JIT_LTO CU_JIT_MAX_REGISTERS CU_JIT_NEW_SM3X_OPT
            CU_JIT_NUM_OPTIONS CU_JIT_OPTIMIZATION_LEVEL CU_JIT_PREC_DIV CU_JIT_PREC_SQRT
            CU_JIT_TARGET CU_JIT_TARGET_FROM_CUCONTEXT CU_JIT_THREADS_PER_BLOCK
            CU_JIT_WALL_TIME CU_TRSA_OVERRIDE_FORMAT CU_TRSF_NORMALIZED_COORDINATES
            CU_TRSF_READ_AS_INTEGER CU_TRSF_SRGB CU_TR_ADDRESS_MODE_BORDER
            CU_TR_ADDRESS_MODE_CLAMP CU_TR_ADDRESS_MODE_MIRROR CU_TR_ADDRESS_MODE_WRAP
            CU_TR_FILTER_MODE_LINEAR CU_TR_FILTER_MODE_POINT
        """,
    },
    "cupy.cuda.memory": {
        "classes": """
            BaseMemory CFunctionAllocator CFunctionAllocatorMemory CUDARuntimeError
            ManagedMemory Memory MemoryAsync MemoryAsyncPool MemoryPointer MemoryPool
            OutOfMemoryError PooledMemory PythonFunctionAllocator
            PythonFunctionAllocatorMemory SingleDeviceMemoryPool SystemMemory UnownedMemory
        """,
        "functions": """
            alloc get_allocator malloc_async malloc_managed malloc_system set_allocator
        """,
    },
    "cupy.cuda.memory_hook": {
        "classes": "MemoryHook",
        "functions": "get_memory_hooks",
    },
    "cupy.cuda.memory_hooks": {
        "classes": "DebugPrintHook LineProfileHook",
    },
    "cupy.cuda.pinned_memory": {
        "classes": "PinnedMemory PinnedMemoryPointer PinnedMemoryPool PooledPinnedMemory",
        "functions": "alloc_pinned_memory is_memory_pinned set_pinned_memory_allocator",
    },
    "cupy.cuda.stream": {
        "classes": "Event ExternalStream Stream",
        "functions": "get_current_stream get_elapsed_time",
    },
    "cupy.cuda.device": {
        "classes": "Device Handle",
        "functions": """
            from_pointer get_compute_capability get_cublas_handle get_cusolver_handle
            get_cusolver_sp_handle get_cusparse_handle get_cutensor_handle get_device_id
        """,
    },
    "cupy.cuda.graph": {
        "classes": "Graph",
    },
    "cupy.cuda.nvtx": {
        "functions": "Mark MarkC RangeEnd RangePop RangePush RangePushC RangeStart",
        "values": "available",
    },
    "cupy.cuda.profiler": {
        "functions": "start stop",
    },
    "cupyx": {
        "classes": "DeviceSynchronized GeneralizedUFunc",
        "functions": """
            allow_synchronize empty_like_pinned empty_pinned errstate get_runtime_info geterr
            rsqrt scatter_add scatter_max scatter_min seterr zeros_like_pinned zeros_pinned
        """,
        "modules": "linalg optimizing profiler scipy time",
    },
    "cupyx.profiler": {
        "classes": "time_range",
        "functions": "benchmark load_ipython_extension profile",
    },
    "cupy.ndarray": {
        "functions": """
            T all any argmax argmin argpartition argsort astype base byteswap choose clip
            compress conj conjugate copy cstruct cumprod cumsum data device diagonal dot dtype
            dump dumps fill flags flat flatten get imag item itemsize mT max mdspan mean min
            nbytes ndim nonzero partition prod ptp put ravel real reduced_view repeat reshape
            round scatter_add scatter_max scatter_min searchsorted set shape size sort squeeze
            std strides sum swapaxes take toDlpack tobytes tofile tolist trace transpose var
            view
        """,
    },
}
