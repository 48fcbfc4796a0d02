package main

/*
#include <stdint.h>
#include <stdlib.h>

static void do_nothing(void *unused) { (void)unused; }
static uint64_t nothing_address(void) { return (uint64_t)(uintptr_t)do_nothing; }

static uint64_t new_pages(uint64_t size)
{
    void *p = NULL;
    return posix_memalign(&p, 4096, size) == 0 ? (uint64_t)(uintptr_t)p : 0;
}
static void free_pages(uint64_t addr) { free((void *)(uintptr_t)addr); }
*/
import "C"

// nothing returns the address of a C function that does nothing.
func nothing() uint64 { return uint64(C.nothing_address()) }

// pages is memory of the program that starts on a page.
type pages struct{ addr uint64 }

func newPages(size uint64) pages { return pages{uint64(C.new_pages(C.uint64_t(size)))} }

func (p pages) free() { C.free_pages(C.uint64_t(p.addr)) }

// fillPTX is a program with one kernel, which the look-alike has in C.
const fillPTX = `.version 6.0
.target sm_50
.address_size 64

.visible .entry fill_u32(.param .u64 x, .param .u32 v, .param .u32 n)
{
	ret;
}
` + "\x00"
