package ptx

/*
#include "program.h"
*/
import "C"

import (
	"math/bits"
	"slices"
)

// visit calls use for every register that an instruction reads and def for those that it writes.
func (p *program) visit(in *C.Insn, use, def func(r *C.int32_t)) {
	if in.guard >= 0 {
		use(&in.guard)
	}
	sources := func() {
		for i, r := range [...]*C.int32_t{&in.a, &in.b, &in.c, &in.e} {
			if i < int(in.sources) {
				use(r)
			}
		}
	}
	memory := func(m *C.MemOperand) {
		if m.base >= 0 {
			use(&m.base)
		}
	}
	switch in.kind {
	case C.K_ALU:
		sources()
		def(&in.d)
	case C.K_LOAD:
		m := &p.mems[in.x]
		memory(m)
		for i := range int(m.vec) {
			if m.regs[i] >= 0 {
				def(&m.regs[i])
			}
		}
	case C.K_STORE:
		m := &p.mems[in.x]
		memory(m)
		for i := range int(m.vec) {
			use(&m.regs[i])
		}
	case C.K_ATOMIC:
		m := &p.mems[in.x]
		memory(m)
		use(&m.regs[0])
		if m.regs[1] >= 0 {
			use(&m.regs[1])
		}
		if in.d >= 0 {
			def(&in.d)
		}
	case C.K_COPY_ASYNC:
		to, from := &p.mems[in.x], &p.mems[in.x+1]
		memory(to)
		memory(from)
		for i := range 2 {
			if to.regs[i] >= 0 {
				use(&to.regs[i])
			}
		}
	case C.K_BRANCH_INDEX, C.K_IS_SPACE, C.K_FREE:
		use(&in.a)
		if in.kind == C.K_IS_SPACE {
			def(&in.d)
		}
	case C.K_CALL:
		if site := &p.calls[in.x]; site._func < 0 {
			use(&site.reg)
		}
	case C.K_BARRIER:
		use(&in.a)
		if in.b >= 0 {
			use(&in.b)
		}
		if in.c >= 0 {
			use(&in.c)
		}
		if in.d >= 0 {
			def(&in.d)
		}
	case C.K_SHUFFLE, C.K_VOTE, C.K_MATCH, C.K_REDUX, C.K_ELECT, C.K_WARP_SYNC:
		for i, r := range [...]*C.int32_t{&in.a, &in.b, &in.c} {
			if i < int(in.sources) {
				use(r)
			}
		}
		if in.e >= 0 {
			use(&in.e)
		}
		if in.d >= 0 {
			def(&in.d)
		}
		if in.x >= 0 {
			def(&in.x)
		}
	case C.K_MMA, C.K_LOAD_MATRIX, C.K_STORE_MATRIX, C.K_WMMA_LOAD, C.K_WMMA_STORE:
		row := p.table[in.x:]
		for i := range int(row[0] + row[1]) {
			r := (*C.int32_t)(&row[4+i])
			if i < int(row[0]) {
				def(r)
			} else {
				use(r)
			}
		}
		if in.a >= 0 {
			use(&in.a)
		}
		if in.b >= 0 {
			use(&in.b)
		}
	case C.K_ACTIVE_MASK, C.K_LOCAL_ADDRESS, C.K_CLOCK:
		def(&in.d)
	case C.K_PRINTF:
		use(&in.a)
		use(&in.b)
		if in.d >= 0 {
			def(&in.d)
		}
	case C.K_ASSERT:
		use(&in.a)
		use(&in.b)
		use(&in.c)
		use(&in.e)
	case C.K_ALLOC:
		use(&in.a)
		def(&in.d)
	}
}

// interval is where a register is alive: from its first to its last place, two for each instruction.
type interval struct {
	start, end int32
	reg        int32
}

// maxLiveness bounds the bits that the search for live registers may take; beyond, slots are not shared.
const maxLiveness = 1 << 28

// blocks divides the function's code into pieces without a jump into or out of them: where each begins, with the end of
// the code behind the last one; which one an instruction belongs to; and whether something jumps to the first one.
func (d *decoder) blocks() (starts, block []int32, again bool) {
	p, code := d.p, d.p.code[d.first:]
	n := len(code)
	leader := make([]bool, n+1)
	leader[0] = true
	mark := func(at int32) {
		leader[int(at)-d.first] = true
		again = again || int(at) == d.first
	}
	for i := range code {
		in := &code[i]
		switch in.kind {
		case C.K_BRANCH:
			mark(int32(in.x))
			leader[i+1] = true
		case C.K_BRANCH_INDEX:
			row := p.table[in.x:]
			for k := range int(row[0]) {
				mark(row[1+k])
			}
			leader[i+1] = true
		case C.K_EXIT, C.K_RETURN:
			leader[i+1] = true
		}
	}
	block = make([]int32, n)
	for i := range n {
		if leader[i] {
			starts = append(starts, int32(i))
		}
		block[i] = int32(len(starts) - 1)
	}
	return append(starts, int32(n)), block, again
}

// finish gives the registers of the decoded function their slots: registers that are never alive together share one.
func (d *decoder) finish() {
	d.simplify()
	p, code := d.p, d.p.code[d.first:]
	n := len(code)
	starts, block, _ := d.blocks()
	count := len(starts) - 1
	next := make([][]int32, 0, count) // successors by block
	for b := range count {
		last := starts[b+1] - 1
		in := &code[last]
		var to []int32
		falls := true
		switch in.kind {
		case C.K_BRANCH:
			to = append(to, block[int(in.x)-d.first])
			falls = in.guard >= 0
		case C.K_BRANCH_INDEX:
			row := p.table[in.x:]
			for k := range int(row[0]) {
				to = append(to, block[int(row[1+k])-d.first])
			}
			falls = in.guard >= 0
		case C.K_EXIT, C.K_RETURN:
			falls = in.guard >= 0
		}
		if falls && b+1 < count {
			to = append(to, int32(b+1))
		}
		next = append(next, to)
	}

	// which registers more than one block knows, or one block reads before it writes them
	const unseen = -1
	regs := len(d.regs)
	home := make([]int32, regs)
	wide := make([]int32, regs) // number among those, or unseen
	for r := range home {
		home[r], wide[r] = unseen, unseen
	}
	var globals int32
	spread := func(r int32) {
		if wide[r] == unseen {
			wide[r] = globals
			globals++
		}
	}
	spans := make([]interval, regs)
	for r := range spans {
		spans[r] = interval{-1, -1, int32(r)}
	}
	touch := func(r int32, at int32) {
		if spans[r].start < 0 {
			spans[r].start = at
		}
		spans[r].end = max(spans[r].end, at)
	}
	for i := range code {
		in := &code[i]
		b := block[i]
		partial := in.guard >= 0
		late := int32(0)
		if in.kind != C.K_ALU { // its operands may not share slots with its results
			late = 1
		}
		p.visit(in, func(r *C.int32_t) {
			if d.regs[*r].fixed {
				return
			}
			if home[*r] != b {
				spread(int32(*r))
			}
			touch(int32(*r), int32(2*i)+late)
		}, func(r *C.int32_t) {
			if home[*r] == unseen && !partial {
				home[*r] = b
			} else if home[*r] != b {
				spread(int32(*r))
			}
			touch(int32(*r), int32(2*i)+1)
		})
	}
	words := int(globals+63) / 64
	var zero []int32
	if int64(words)*int64(count)*64*3 > maxLiveness {
		for r := range spans {
			if spans[r].start >= 0 {
				spans[r].start, spans[r].end = 0, int32(2*n)
				zero = append(zero, int32(r))
			}
		}
	} else {
		bitsets := make([]uint64, 3*words*count)
		set := func(kind, b int) []uint64 { return bitsets[(kind*count+b)*words:][:words] }
		for b := range count { // 0: read before written, 1: written, then 2: alive at the end
			in, out := set(0, b), set(1, b)
			for i := starts[b]; i < starts[b+1]; i++ {
				partial := code[i].guard >= 0
				p.visit(&code[i], func(r *C.int32_t) {
					if w := wide[*r]; w >= 0 && out[w/64]>>(w%64)&1 == 0 {
						in[w/64] |= 1 << (w % 64)
					}
				}, func(r *C.int32_t) {
					w := wide[*r]
					if w < 0 {
						return
					}
					if partial && out[w/64]>>(w%64)&1 == 0 {
						in[w/64] |= 1 << (w % 64)
					} else {
						out[w/64] |= 1 << (w % 64)
					}
				})
			}
		}
		for changed := true; changed; {
			changed = false
			for b := count - 1; b >= 0; b-- {
				in, written, alive := set(0, b), set(1, b), set(2, b)
				for _, s := range next[b] {
					from := set(0, int(s))
					for w := range alive {
						if add := from[w] &^ alive[w]; add != 0 {
							alive[w] |= add
							in[w] |= add &^ written[w]
							changed = true
						}
					}
				}
			}
		}
		number := make([]int32, globals)
		for r, w := range wide {
			if w >= 0 {
				number[w] = int32(r)
			}
		}
		each := func(s []uint64, f func(r int32)) {
			for w, v := range s {
				for ; v != 0; v &= v - 1 {
					f(number[w*64+bits.TrailingZeros64(v)])
				}
			}
		}
		for b := range count {
			each(set(0, b), func(r int32) { widen(&spans[r], 2*starts[b]) })
			each(set(2, b), func(r int32) { widen(&spans[r], 2*starts[b+1]) })
		}
		each(set(0, 0), func(r int32) { zero = append(zero, r) })
	}
	// liveness of loaded values, for the check of uninitialised shared memory
	used := make([]bool, regs)
	for i := range code {
		p.visit(&code[i], func(r *C.int32_t) { used[*r] = true }, func(*C.int32_t) {})
	}
	if d.isEntry {
		p.reach = p.accesses(d.f, len(d.regs))
	}
	d.assign(spans, zero)
	for i := range code {
		if code[i].kind == C.K_LOAD {
			m := &p.mems[code[i].x]
			for k := range int(m.vec) {
				m.live[k] = 0
				if m.regs[k] >= 0 && used[m.regs[k]] {
					m.live[k] = 1
				}
			}
		}
		slot := func(r *C.int32_t) { *r = C.int32_t(d.regs[*r].slot) }
		p.visit(&code[i], slot, slot)
	}
}

func widen(s *interval, at int32) {
	s.start = min(s.start, at)
	s.end = max(s.end, at)
}

// assign gives every register a slot, those of one size by a linear scan.
func (d *decoder) assign(spans []interval, zero []int32) {
	p := d.p
	slices.SortFunc(spans, func(a, b interval) int {
		if a.start != b.start {
			return int(a.start - b.start)
		}
		return int(a.reg - b.reg)
	})
	type busy struct {
		end  int32
		slot int32
	}
	var frame int32
	var active, free [17][]busy // by size; active is a heap by its end
	for _, s := range spans {
		r := &d.regs[s.reg]
		if s.start < 0 || r.fixed {
			continue
		}
		a := active[r.size]
		for len(a) > 0 && a[0].end < s.start {
			free[r.size] = append(free[r.size], a[0])
			last := len(a) - 1
			a[0] = a[last]
			a = a[:last]
			for i := 0; ; { // down the heap
				c := 2*i + 1
				if c >= last {
					break
				}
				if c+1 < last && a[c+1].end < a[c].end {
					c++
				}
				if a[i].end <= a[c].end {
					break
				}
				a[i], a[c] = a[c], a[i]
				i = c
			}
		}
		b := busy{end: s.end}
		if f := free[r.size]; len(f) > 0 {
			b.slot = f[len(f)-1].slot
			free[r.size] = f[:len(f)-1]
		} else {
			b.slot = frame
			frame += int32(r.size)
		}
		r.slot = b.slot
		a = append(a, b)
		for i := len(a) - 1; i > 0 && a[(i-1)/2].end > a[i].end; i = (i - 1) / 2 {
			a[i], a[(i-1)/2] = a[(i-1)/2], a[i]
		}
		active[r.size] = a
	}
	fn := &p.funcs[p.number[d.f]]
	fn.fills = C.int32_t(len(p.fills))
	for i := range d.regs {
		r := &d.regs[i]
		if !r.fixed {
			continue
		}
		r.slot = frame
		frame += int32(r.size)
		r.fill.slot = C.int32_t(r.slot)
		if r.base != nil {
			p.addresses = append(p.addresses, sharedAddress{v: r.base, fill: len(p.fills), mem: -1})
		}
		p.fills = append(p.fills, r.fill)
	}
	for _, r := range zero {
		p.fills = append(p.fills, C.Fill{slot: C.int32_t(d.regs[r].slot), size: C.uint8_t(d.regs[r].size), what: C.FILL_ZERO})
	}
	fn.fill_count = C.int32_t(len(p.fills)) - fn.fills
	fn.frame_bytes = C.int32_t(max(frame, 16))
	fn.local_bytes = C.int32_t(d.local)
	fn.entry = C.int32_t(d.first)
}
