package ptx

/*
#include "program.h"
*/
import "C"

// accesses follows the values of parameters through the registers of a kernel, before they share slots, to the
// addresses of loads and stores.
func (p *program) accesses(f *function, registers int) []Access {
	params := f.layout()
	out := make([]Access, len(params))
	calls := false
	for i := range p.code {
		calls = calls || p.code[i].kind == C.K_CALL
	}
	if len(params) > 62 || calls { // values that go through calls are not followed
		for i := range out {
			out[i] = AccessRead | AccessWrite | AccessUnknown
		}
		return out
	}
	const unknown = uint64(1) << 63
	of := make([]uint64, registers) // of which parameters a register may have the value
	owner := func(offset, size int) (set uint64) {
		for i, q := range params {
			if offset < q.Offset+q.Size && offset+size > q.Offset {
				set |= 1 << i
			}
		}
		return set
	}
	for changed := true; changed; {
		changed = false
		add := func(slot C.int32_t, set uint64) {
			if of[slot]|set != of[slot] {
				of[slot] |= set
				changed = true
			}
		}
		for i := range p.code {
			in := &p.code[i]
			switch in.kind {
			case C.K_LOAD:
				m := &p.mems[in.x]
				for k := range int(m.vec) {
					if m.regs[k] < 0 || m.reg_size < 8 && m.size < 8 {
						continue
					}
					set := unknown
					if m.space == C.SPACE_PARAM && m.base < 0 {
						set = owner(int(m.offset)+k*int(m.size), int(m.size))
					}
					add(m.regs[k], set)
				}
			case C.K_LOCAL_ADDRESS, C.K_CLOCK, C.K_ACTIVE_MASK:
			default:
				var set uint64
				if in.kind == C.K_ATOMIC || in.kind == C.K_ALLOC {
					set = unknown
					if in.size_d < 8 {
						set = 0
					}
				}
				if in.kind != C.K_STORE && in.kind != C.K_ATOMIC {
					p.visit(in, func(r *C.int32_t) { set |= of[*r] }, func(*C.int32_t) {})
				}
				p.visit(in, func(*C.int32_t) {}, func(r *C.int32_t) { add(*r, set) })
			}
		}
	}
	any := false
	mark := func(base C.int32_t, a Access) {
		if base < 0 {
			return
		}
		set := of[base]
		any = any || set&unknown != 0
		for i := range out {
			if set>>i&1 != 0 {
				out[i] |= a
			}
		}
	}
	for i := range p.code {
		in := &p.code[i]
		var m *C.MemOperand
		a := AccessRead
		switch in.kind {
		case C.K_LOAD:
			m = &p.mems[in.x]
		case C.K_STORE:
			m, a = &p.mems[in.x], AccessWrite
		case C.K_ATOMIC:
			m, a = &p.mems[in.x], AccessRead|AccessWrite
		case C.K_COPY_ASYNC:
			m = &p.mems[in.x+1]
		case C.K_WMMA_STORE, C.K_STORE_MATRIX:
			mark(in.a, AccessWrite)
		case C.K_WMMA_LOAD, C.K_LOAD_MATRIX:
			mark(in.a, AccessRead)
		case C.K_PRINTF:
			any = any || of[in.a]&unknown != 0
		}
		if m != nil && m.base >= 0 && (m.space == C.SPACE_GLOBAL || m.space == C.SPACE_GENERIC || m.space == C.SPACE_CONST) {
			mark(m.base, a)
		}
	}
	if any {
		for i := range out {
			out[i] |= AccessUnknown
		}
	}
	return out
}
