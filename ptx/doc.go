// Package ptx runs PTX, the assembly language of NVIDIA GPUs, on the processor.
//
// A text is parsed once ([Parse]), and a kernel decoded when it is first asked for ([Module.Kernel]). A launch
// ([Kernel.Start]) is then executed block by block in C, by as many threads as call [Run.Work].
//
// # How a kernel is executed
//
// A block is executed as a whole: a register is an array with an element for each thread, and an instruction is a
// loop over them (lanes.def has a line for each loop; lanes_*.c compile them for several instruction sets of the
// processor). Registers that are never alive at once share an array (liveness.go), so that the arrays of a block stay
// in the cache.
//
// Threads that are at different instructions are groups. The group of the deepest call, at the lowest instruction,
// runs until it comes to where another one waits, and they go on together. A group that only jumps back gives way to
// others from time to time, and so does a block, so that threads and blocks may wait for each other. Barriers, and
// instructions that a warp executes together, hold a group until the threads that they name are there. Threads that
// ended count as being there.
//
// A call has a frame with registers of its own, so that recursion works. Its parameters are copied between the local
// memories of caller and callee.
//
// # Memory
//
// Global memory is the memory of the process, at its addresses. Generic addresses of shared memory, local memory and
// parameters have a number in their highest byte. Atomic operations are atomic for all threads of the process.
// Shared and local memory begin as zeros in every block, so that a kernel always does the same.
//
// Every access is checked: against the ranges of memory that the launch was given, for its alignment, against the
// sizes of shared and local memory. Further checks are flags of a launch.
//
// # What is supported
//
// All instructions of sm_80, and conversions of 8-bit floats, stmatrix and atomic operations on 128 bits, but
// textures, surfaces, video instructions, sparse matrices, and mma.m8n8k4 of f16. What needs a later processor is refused
// with the name and the line of the instruction.
//
// Results differ from a GPU's where its instructions approximate or leave the order open: ex2, lg2, rcp, rsqrt, sin,
// cos and tanh are more exact here, a matrix product adds in the order of k, and NaN is not always the same one.
package ptx
