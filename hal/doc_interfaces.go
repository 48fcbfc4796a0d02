// # C interface (halstream.h)
//
//   - C1: Every call works on any thread, with or without Python's lock, known to
//     Python or not, and on the numbers that Python's objects have. A thread that
//     ends leaves nothing behind.
//   - C2: The error of a native function, with its name and text, becomes that of its
//     stream (S4), and later work runs. The next synchronize of an event recorded
//     last on that stream, or of the device, returns it as well, whichever is first.
//   - C3: What belongs to a native function is released exactly once: after the
//     function, or instead of it where the operation is dropped; not where it was
//     refused. A release may close and free: the next call does it.
//   - C4: Listeners see the name, the site and the ranges that a native function was
//     given; of rows with gaps each one, up to 4096 of them.
//   - C5: A number that is unknown, closed or of another kind of object, a pointer
//     that is missing and a flag that does not exist are errors with a text.
//   - C6: In a forked child and after the runtime has shut down every call fails at
//     once. Threads that wait then return or stay; the process ends.
//   - C7: A wait with a limit fails when that passes, and the text names what is
//     pending. A wait with Python's lock held lets other threads of Python's run
//     and handlers of signals, whose exception ends it.
//   - C8: A freed block can be allocated again on its own stream at once, and elsewhere
//     after the work of its stream and of those that were recorded for it. The free is
//     no access, unless the block was allocated in order: what its memory is allocated
//     for next is compared with the work that still uses it, on whatever stream that is:
//     neither the free nor the allocation comes between. What it waited for before it
//     is given out again on its own stream orders nothing but accesses to it.
//   - C9: A table of a newer version is not given out. Structs begin with their sizes:
//     shorter ones than were ever valid are refused.
//   - C10: A stream says in which capture it takes part. A native function that was
//     captured runs once in each launch; what belongs to it is released once, when
//     neither the graph nor a launch needs it any more.
//   - C11: With HALSTREAM_LOSES_DEVICE an error of a native function is one of its device
//     (D7). The error counts as reported once a thread has asked for its text.
//   - C12: With HALSTREAM_HANDS_IN the ranges of a native function are an upper bound, and it
//     hands in what it accesses from its own thread while it runs (V45). From elsewhere, or
//     without the flag, that is an error.
//
// # AscendCL in C (Python)
//
//   - N1: Programs in C11 and C++11 compile against the headers of libascendcl.so
//     without a warning, and run without Python. It exports what its headers declare
//     and nothing else, and the numbers in them are those of halstream.acl.
//   - N2: A call of what another part of AscendCL has (models, operators, media) does
//     not compile, and the message names the part.
//   - N3: The rules of streams, events, contexts, memory, notifies, captures and host
//     functions hold for programs in C, with the codes of halstream.acl.
//   - N4: A handle that was destroyed, was never given out or names another kind of
//     object is 107017, and no later object gets the same one. A missing output is
//     100000. Each failure leaves a text with the name of the function, for its
//     own thread, once.
//   - N5: Threads may come, call and end at any time, also many at once.
//   - N6: In a forked child a call that needs the runtime fails at once. A program may
//     end with pending work, inside a host function, and without aclFinalize.
//   - N7: A program may be compiled with ThreadSanitizer, which then knows what
//     streams and events order and reports what nothing orders, or with
//     AddressSanitizer.
//   - N8: pkg-config and CMake find the library.
//   - N9: The first aclInit and the last aclFinalize call the functions that the
//     program registered for them, in that order and without a lock, with the text of
//     the settings. One that fails ends aclInit with its code.
//   - N10: With HALSTREAM_SANITIZE the end of a program reports copies and fills of the
//     same bytes that nothing orders, and pinned sources that changed before their
//     copy, with the call sites. The exit code is then 66 instead of 0.
//   - N11: With HALSTREAM_SCHEDULE a program runs under that deterministic schedule
//     (X1), and does the same each time if it has one thread. Functions that wait for
//     the host let it go on.
//   - N12: `halstream run --schedules` runs a compiled program under that many
//     schedules until it fails under one, and prints the commands that repeat it, one of
//     them with a token; `halstream replay` says where a token is of other calls.
//   - N13: The backend "ascend" is CANN's own libascendcl.so, loaded at run time. Where it
//     cannot be used the error says what is missing and what to do; automatic choice takes
//     cuda, then ascend, then host. No function of the program runs within the library.
//   - N14: A query of an event and a wait for it are of the latest record, whichever thread
//     made it. A handle of an object that has ended names no later one, and a function on a
//     stream gets no answer.
//   - N15: Functions and callbacks run one after the other in the order of their stream,
//     callbacks on the thread of the subscription, those of urgent streams first where
//     threads are few. The context and the subscription are checked when they are enqueued,
//     and an abort drops those that have not begun.
//   - N16: A wait without a limit that nothing can end returns 507046 (507047 for an
//     event, 107019 for an abort of a device), and says who waits for whom, with the stack
//     of the call and the functions' names. One that a thread, a function that runs or a
//     signal may end goes on; an abort waits 36 minutes at most.
//   - N17: `halstream trace` writes what a compiled program's streams did, with the call
//     sites.
//   - N18: Functions may say what they access, and so may the host; the sanitizer treats
//     that as it does copies.
//   - N19: Functions of the program are called when a device is set and reset and a stream
//     made and destroyed. What needs a chip, another process or a model compiles and returns
//     207000.
//   - N20: A model has one handle from the capture to its end, a name, a number, a list of its
//     tasks, and functions that are called at its end. While a stream captures, a wait for the
//     device is 107027, an asynchronous copy of pageable memory 107030, and an event of the
//     older kind 207000. A wait that an abort of the device ends is 107022. Each callback for
//     exceptions gets the stream.
//
// # The CUDA driver (Python)
//
// libcuda.so.1 over the host device, for programs of CUDA.
//
//   - U1: The functions of the driver keep the rules of streams, events, memory, kernels and graphs above, and return the
//     codes that CUDA documents. What is not built returns 801 (CUDA_ERROR_NOT_SUPPORTED), and each function says why on
//     stderr, once. A function of a stream may not call the driver: 800.
//   - U2: A program finds each function by the version of CUDA that it was written for, and the twins for per-thread
//     default streams; structures have the layout of that version.
//   - U3: A program for the device is PTX: text, in a fat binary also where LZ4 has compressed it, or what the driver's
//     linker has made of texts. Machine code alone is 209 (CUDA_ERROR_NO_BINARY_FOR_GPU), with what to do on stderr.
//   - U4: After a fault of a kernel every call on its context returns the fault's code, until the primary context is
//     reset. The text of the fault is on stderr, once.
//   - U5: A process has one runtime, whether a program in Python uses the driver, the package, or both. The tools of the
//     package see what is done with the driver, with the program's lines.
//   - U6: Programs in other languages have the sanitizer, schedules and reports of waits as those of AscendCL have them
//     (N12, N16), the report of a wait that can never end with 702. A forked child gets 3 from every call.
//   - U7: The calls of CUDA's runtime are those of the driver on the thread's current device, with the codes and texts
//     of the runtime, and the last error of each thread. A report has the line of the launch, and not that of the stub
//     that the compiler writes. What is not provided returns 801, and its name is on stderr.
//
// # Task (Python)
//
//   - T1: Contexts nest, and leaving restores what stood before, also after an
//     exception and across devices. A context that is not the innermost one
//     when it ends takes only itself away.
//   - T2: Changing the current stream or device inside a context ends with it;
//     outside it holds for the asyncio task or else for the thread, or for the
//     process where the dialect says so.
//   - T3: A new thread starts at the defaults, also with a copied context.
//   - T4: Each asyncio task has its own current stream and device, and begins
//     with its maker's. In strict mode the guards of paddle and mindspore hold
//     for the process.
//   - T5: A stream is current on its own device only.
//   - T6: Deleting or closing the current stream is safe.
//
// # PyTorch's CUDA device (Python)
//
//   - F1: An operator on CUDA tensors is enqueued on the current stream of their
//     device, and the call returns. One whose results' shapes or values the host
//     needs (nonzero, item) waits for that stream.
//   - F2: It is listed with the bytes that its schema says it reads and writes; of
//     a view these are the view's.
//   - F3: Numbers, and CPU tensors where CUDA takes them, take part with their
//     values at the call. A number that is stored (x[1] = 5) makes nobody wait.
//   - F4: Wrong shapes, types and devices are errors of the call. What fails in a
//     kernel makes its device lost (D7): no value is handed out from then on, and each
//     call that enqueues, queries or waits, on any stream and thread, raises the error
//     with the code of a device-side assert, the operator's name and the program's line.
//     Dropping tensors and emptying caches raise nothing.
//   - F5: Backward runs an operator on the stream of its forward, and waits for the
//     stream on which its gradient was made. After backward() the current stream
//     has waited for the streams of all leaves.
//   - F6: A copy with non_blocking between pinned and device memory returns at
//     once, a conversion too. From pageable memory the values at the call are copied.
//     A copy to pageable memory, and every copy without non_blocking, returns when it
//     is done. One to pageable memory with non_blocking orders nothing for the host, as V9.
//   - F7: Device memory that is dropped can be allocated again on its own stream at
//     once; what record_stream named has to end first.
//   - F8: Pinned memory that is dropped is not allocated again before the copies that
//     use it are done.
//   - F9: Random numbers follow from the seed of their generator and the order of
//     the calls, not from when operators run. CPU generators take no part.
//   - F10: A copy between devices waits for the current streams of both, and both
//     wait for it.
//   - F11: Each thread has its own current stream on each device. torch.cuda.Stream()
//     takes one of 32 of its priority, which are non-blocking.
//   - F12: In a forked child every use of the device is torch's error; CPU tensors
//     work. No kernel begins while the process forks, and a fork waits up to a
//     second for those that run.
//   - F13: CPU tensors are what they are without the redirection. Undoing it gives
//     torch its names back; a second one changes nothing.
//   - F14: A process that exits with operators pending ends, with its own code.
//   - F15: torch sees the devices that CUDA_VISIBLE_DEVICES leaves, as CUDA's driver
//     reads it, until the first use of one. Where it leaves none, torch.cuda is not
//     available.
//   - F16: Figures of memory count blocks rounded to 512 bytes, or as the allocator's
//     settings say. More than the process's share of a device is out of memory.
//   - F17: empty_cache waits for the uses of freed memory that record_stream named,
//     and for nothing else.
//   - F18: A recorded history has each allocation and free, with the stacks that were
//     asked for, until recording ends.
//   - F19: Functions of torch.cuda.comm run in the order of the current streams of all
//     their devices. Wrong arguments are errors of the call.
//   - F20: Reports name an operator with the path of the module that made it, and
//     memory of a module by its parameter.
//   - F21: Pinned memory counts as in use until the copies that use it are done, and
//     as allocated until empty_host_cache.
//   - F22: What the thread that called backward had done and waited for comes before the
//     pass, and it comes behind each wait for a stream, an event or the device that the
//     pass made on a thread of autograd.
//   - F23: A device has a primary context from the first use of it: work enqueued,
//     a stream taken, a wait for it, or set_device. Pinning uses one that exists.
//   - F24: Operators of a compiled library that has kernels for both devices run by
//     those for the CPU. TorchScript fuses nothing for CUDA until undone.
//   - F25: Sparse tensors (COO and compressed), nested tensors of the strided layout
//     and quantized tensors consist of strided ones on the device, which operators
//     read and write in the order of streams. What the CPU has no kernel for is
//     refused by name.
//   - F26: Figures of memory count the segments of the pools, and the free parts of
//     those in use, as the snapshot shows them.
//   - F27: A collective of a process group on the device is an operation on a stream of
//     the group's own, behind what the caller's stream has and behind the group's
//     collective before it. Waiting for its work orders the current stream behind it
//     and blocks the host only for a barrier, with a limit, and with gloo by name.
//   - F28: A group that is split from one of NCCL's is of NCCL's class, has streams of
//     its own, the limit it is given, and the priority of its options or else the parent's.
//   - F29: A profile has each collective of one of NCCL's groups, and each wait for one
//     that is asynchronous, as an operator record_param_comms with the group and sizes.
//   - F30: Operators on a stream that captures become nodes of a torch.cuda.CUDAGraph,
//     which run in each replay, on the same memory, with random numbers that are drawn
//     for the replay. What needs a value, a wait, pageable memory or a collective is an
//     error of the call, and the stream is usable afterwards.
//   - F31: Memory that is allocated in a capture, or within use_mem_pool, belongs to a
//     pool. It is allocated again for work of its own stream only, and for nothing else
//     until the last graph or object that uses the pool is reset or collected. A replay
//     whose inputs were freed is an error, and nothing runs.
//   - F32: Results are those of the CPU's kernels for the same numbers, types and
//     layouts, also where a kernel writes into the results' memory. Of what the other
//     kernels allocate 64 MiB at most are kept for the next ones.
//   - F33: A test in which an operator loses a device, and in which no call reports that,
//     fails with the operator's error; the next test finds the device working.
//   - F34: A kernel of Triton is enqueued on the stream that Triton names, with the bytes
//     that it accesses known exactly, in captures too. Its fault loses the device (K3), with
//     the line of the kernel and that of the launch.
//   - F35: torch.compile is torch's own. Its kernels run on the streams that are current in the
//     compiled function, and graphs of mode "reduce-overhead" share memory as torch's trees of graphs do.
//   - F36: Autotuning takes the first configuration that compiles and fits, without running
//     others to measure them.
//   - F37: A collective of one of NCCL's groups whose peer has ended, or that takes longer than its limit,
//     makes its device lost (D7): no value is handed out, and each call that enqueues, queries or waits raises
//     torch's DistBackendError with NCCL's text and the line of the collective. The group carries nothing from
//     then on; it can be destroyed. In a group of gloo the call that waits raises, and the device works on.
//   - F38: Collectives of one number in a group that do not fit fail in all its ranks as in F37, before bytes
//     travel: another kind, reduction, type or root, or other sizes than a rank expects. Each error names
//     what each rank is in, with its line.
//   - F39: A wait of the host that only other ranks could end, each of which waits for another one of them,
//     raises StallError in each with the chain of ranks, collectives and lines. So does one for a rank that has
//     a stall of its own. Nothing is said of ranks of several machines, or while a rank runs or sleeps.
//   - F40: A tensor that torch.multiprocessing sends to another process is the same memory there, and the
//     receiver's current stream waits for what the sender's had by then. It stays until the receiver has dropped
//     it. What cannot be sent raises where it is sent, or by a queue where it is received.
//
// # Paddle's custom device (Python)
//
//   - Y1: An operator in stream order is enqueued on the current stream of its device,
//     and the call returns. Any other one waits for the stream, and runs on the CPU.
//   - Y2: Such an operator is listed with its name, the program's line and the bytes of
//     the tensors that it reads and writes.
//   - Y3: The source of a copy from pageable memory may change after the call. A copy to
//     another device comes behind the work of the source's device, and before its later work.
//   - Y4: A query answers at once whether the work is done. A wait for an event is for
//     the record before it.
//   - Y5: Paddle's wait_stream does not block the host, nor does the end of an event. A
//     wait of the host lets other threads of Python's run.
//   - Y6: The elapsed time of events with timing is in milliseconds; of others it is an
//     error.
//   - Y7: Streams and events take a device, a priority and blocking in all documented
//     forms, in every version, and the stream has what was asked for.
//   - Y8: What fails in a kernel is an error of the next wait for its stream, once, with
//     the operator's name.
//   - Y9: Memory that is dropped is not allocated again before the work of its stream
//     that uses it, and what Paddle's pools give back not before the work that its device
//     has.
//   - Y10: Before Paddle is imported, and with a version and a CUSTOM_DEVICE_ROOT that
//     fit, the plug-in can be installed; otherwise it is refused with the reason. It
//     leaves nothing in the environment.
//   - Y11: In a forked child everything runs at once on the calling thread.
//   - Y12: A process that exits with operators pending ends, with its own code.
//   - Y13: Undoing gives Paddle its own functions and kernels back; patching replaces
//     them again.
//   - Y14: A command lists which operators run in stream order.
//   - Y15: `halstream run --paddle` needs no change of the program, and the sanitizer
//     reports a missing wait between operators.
//   - Y16: The functions of the plug-in have the offsets that the header of the
//     installed Paddle gives them.
//   - Y17: Results, gradients and steps of optimizers are those of the CPU.
//   - Y18: Traces, tokens and reports of waits that can never end have Paddle's operators
//     and the program's lines. A thread that Paddle starts for itself while it is imported
//     ends no wait.
//   - Y19: What Paddle's own tests of custom devices do works: loaders with workers give
//     batches on the device, copies go between all places, gradients add up.
//
// # Objects (Python)
//
//   - J1: Attributes, weak references, cycles and finalizers of an event are as for a
//     class that is written in Python.
//
// # Graphs of halstream.paddle (Python)
//
//   - J4: What a capture of halstream.paddle allocates stays usable after each replay, until
//     the next one.
//
// # Threads of the interpreter (Python)
//
//   - P3: The first use of the runtime returns once each thread that it starts in Python
//     has begun, and the end of the program waits for one that another thread is starting: none
//     begins while the interpreter ends, which is fatal to some versions.
package hal
