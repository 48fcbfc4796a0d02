package ptx

/*
#include "program.h"
*/
import "C"

var moves = map[C.uint16_t]bool{
	laneLoops["mov_1"]: true, laneLoops["mov_2"]: true, laneLoops["mov_4"]: true, laneLoops["mov_8"]: true, laneLoops["mov_16"]: true,
}

// simplify removes moves whose result can be had from their source, and instructions whose result nobody reads.
//
// A move can go if its result and its source are written at one place each, and no read of the result can come between
// a new value of the source and the move: both are in one piece of code without jumps, or the source is a constant, or
// it is written once, in the piece at the begin.
func (d *decoder) simplify() {
	p, code := d.p, d.p.code[d.first:]
	_, block, again := d.blocks()
	regs := len(d.regs)
	writes, at, read := make([]int32, regs), make([]int32, regs), make([]int32, regs)
	for i := range code {
		p.visit(&code[i], func(*C.int32_t) {}, func(r *C.int32_t) {
			writes[*r]++
			at[*r] = int32(i)
		})
	}
	instead := make([]int32, regs)
	for r := range instead {
		instead[r], read[r] = int32(r), -1
	}
	gone := make([]bool, len(code))
	for i := range code {
		in := &code[i]
		if in.kind == C.K_ALU && in.guard < 0 && in.mods == 0 && moves[in.fn] && writes[in.d] == 1 && in.d != in.a {
			from := instead[in.a]
			same := writes[from] == 1 && block[at[from]] == block[i] && int(at[from]) < i && read[in.d] < at[from]
			once := writes[from] == 1 && block[at[from]] == 0 && !again && int(at[from]) < i
			if d.regs[from].fixed || (same || once) && code[at[from]].guard < 0 {
				instead[in.d] = from
				gone[i] = true
			}
		}
		p.visit(in, func(r *C.int32_t) { read[*r] = int32(i) }, func(*C.int32_t) {})
	}
	reads := make([]int32, regs)
	for i := range code {
		if !gone[i] {
			p.visit(&code[i], func(r *C.int32_t) {
				*r = C.int32_t(instead[*r])
				reads[*r]++
			}, func(*C.int32_t) {})
		}
	}
	for i := len(code) - 1; i >= 0; i-- {
		in := &code[i]
		if in.kind == C.K_ALU && !gone[i] && reads[in.d] == 0 {
			gone[i] = true
			p.visit(in, func(r *C.int32_t) { reads[*r]-- }, func(*C.int32_t) {})
		}
	}
	d.remove(gone)
}

// remove takes instructions out of the function's code.
func (d *decoder) remove(gone []bool) {
	p, code := d.p, d.p.code[d.first:]
	place := make([]int32, len(code)+1)
	kept := 0
	for i := range code {
		place[i] = int32(d.first + kept)
		if gone[i] {
			continue
		}
		code[kept] = code[i]
		p.lines[d.first+kept], p.texts[d.first+kept] = p.lines[d.first+i], p.texts[d.first+i]
		kept++
	}
	end := d.first + kept
	p.code, p.lines, p.texts = p.code[:end], p.lines[:end], p.texts[:end]
	for i := range p.code[d.first:] {
		in := &p.code[d.first+i]
		switch in.kind {
		case C.K_BRANCH:
			in.x = C.int32_t(place[int(in.x)-d.first])
		case C.K_BRANCH_INDEX:
			row := p.table[in.x:]
			for k := range int(row[0]) {
				row[1+k] = place[int(row[1+k])-d.first]
			}
		}
	}
	for i, at := range p.indirect {
		if at >= d.first {
			p.indirect[i] = int(place[at-d.first])
		}
	}
}
