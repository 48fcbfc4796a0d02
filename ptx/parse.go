package ptx

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

type space uint8

const (
	spaceGeneric space = iota
	spaceGlobal
	spaceShared
	spaceLocal
	spaceParam
	spaceConst
	spaceReg
)

var spaceNames = map[string]space{
	".reg": spaceReg, ".global": spaceGlobal, ".shared": spaceShared, ".local": spaceLocal, ".param": spaceParam, ".const": spaceConst,
}

// typeSizes has the bytes of a value of each type.
var typeSizes = map[string]int{
	"pred": 1, "b8": 1, "u8": 1, "s8": 1, "e4m3": 1, "e5m2": 1,
	"b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "e4m3x2": 2, "e5m2x2": 2,
	"b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "u16x2": 4, "s16x2": 4, "tf32": 4,
	"b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16,
}

// variable is a register, or something in memory.
type variable struct {
	name    string
	space   space
	typ     string
	size    int // bytes of all of it
	align   int
	extern  bool
	unsized bool // an array without a length: dynamic shared memory
	pointer bool // a parameter that is declared as a pointer
	init    []initial
	offset  int // in its space; of a register its number
	owner   *function
	index   int // of a parameter
}

// initial is the value of some bytes of a variable.
type initial struct {
	offset, size int
	bits         uint64
	symbol       string
	generic      bool
	add          int64
	shift        int // of a byte of an address: how far it is shifted
	line         int
}

type operandKind uint8

const (
	operandNone operandKind = iota
	operandVar              // a register or a variable
	operandInt
	operandFloat32 // the bits of one
	operandFloat64
	operandDecimal
	operandMemory
	operandVector
	operandName // a label, a function
	operandSpecial
	operandSink
)

type operand struct {
	kind   operandKind
	not    bool
	minus  bool
	v      *variable
	name   string
	bits   uint64
	offset int64
	elems  []operand // of a vector; of memory its base
	second *operand  // of p|q
}

type statement struct {
	label    string // alone, or empty
	opcode   string // with all modifiers
	guard    *variable
	guardNot bool
	args     []operand
	rets     []operand // of a call
	loc      int32
	line     int
}

// location is a line of the program that the PTX was compiled from.
type location struct {
	file, line int
	inlined    int32 // the call that it was inlined at, or -1
}

// branchTable is a list of labels for brx.idx.
type branchTable struct {
	name    string
	targets []string
}

type function struct {
	name      string
	entry     bool
	extern    bool
	params    []*variable
	rets      []*variable
	body      []statement
	hasBody   bool
	registers int
	locals    []*variable // .local and .param of the body
	shared    []*variable // .shared of the body
	tables    []branchTable
	reqBlock  [3]int
	maxBlock  [3]int
	index     int
	line      int
}

// Module is a parsed text, with its variables in memory.
type Module struct {
	text      string
	version   string
	target    string
	functions map[string]*function
	order     []*function
	globals   map[string]*variable
	inOrder   []*variable
	files     map[int]string
	locations []location
	state     *moduleState
}

type scope struct {
	names    map[string]*variable
	families map[string]*variable
}

type parser struct {
	lexer
	tok     token
	ahead   token
	peeked  bool
	m       *Module
	f       *function
	scopes  []scope
	places  map[location]int32
	renamed int
	room    []operand // for those of the next statements
}

const (
	maxVariable = 1 << 31
	maxNesting  = 200
	maxText     = 64 << 20
)

// Parse reads a module. Variables of the module get their memory at once.
//
// # Errors
//   - [SyntaxError]: with the line and what was expected there.
func Parse(text string) (m *Module, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*SyntaxError)
			if !ok {
				panic(r)
			}
			m, err = nil, e
		}
	}()
	m = &Module{text: text, functions: map[string]*function{}, globals: map[string]*variable{}, files: map[int]string{}}
	p := &parser{lexer: lexer{text: text, line: 1}, m: m, places: map[location]int32{}}
	if len(text) > maxText {
		p.fail("a text of %d bytes; at most %d are read", len(text), maxText)
	}
	p.advance()
	if !p.is(".version") {
		p.fail("PTX begins with .version, not with %q", p.tok.text)
	}
	p.push()
	for p.tok.kind != tokenEnd {
		p.directive()
	}
	m.place()
	return m, nil
}

func (p *parser) advance() token {
	t := p.tok
	if p.peeked {
		p.tok, p.peeked = p.ahead, false
	} else {
		p.tok = p.lexer.next()
	}
	return t
}

func (p *parser) peek() token {
	if !p.peeked {
		p.ahead, p.peeked = p.lexer.next(), true
	}
	return p.ahead
}

func (p *parser) fail(format string, args ...any) {
	line := p.tok.line
	if line == 0 {
		line = 1
	}
	panic(&SyntaxError{line, fmt.Sprintf(format, args...)})
}

func (p *parser) is(text string) bool { return p.tok.text == text && p.tok.kind != tokenString }

func (p *parser) take(text string) bool {
	if !p.is(text) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) want(text string) {
	if !p.take(text) {
		p.fail("%q expected, not %q", text, p.tok.text)
	}
}

func (p *parser) word(what string) string {
	if p.tok.kind != tokenWord {
		p.fail("%s expected, not %q", what, p.tok.text)
	}
	return p.advance().text
}

func (p *parser) push() {
	if len(p.scopes) > maxNesting {
		p.fail("blocks are nested more than %d deep", maxNesting)
	}
	p.scopes = append(p.scopes, scope{map[string]*variable{}, nil})
}

func (p *parser) pop() { p.scopes = p.scopes[:len(p.scopes)-1] }

func stem(name string) string { return strings.TrimRight(name, "0123456789") }

// lookup finds a variable. The registers of a family such as %r<100> come into being when they are named.
func (p *parser) lookup(name string) *variable {
	for i := len(p.scopes) - 1; i >= 0; i-- {
		s := &p.scopes[i]
		if v := s.names[name]; v != nil {
			return v
		}
		if len(s.families) == 0 {
			continue
		}
		begin := stem(name)
		f := s.families[begin]
		if f == nil || begin == name {
			continue
		}
		n, err := strconv.Atoi(name[len(begin):])
		if err != nil || n >= f.size {
			p.fail("register %s: there are %s<%d>", name, begin, f.size)
		}
		v := &variable{name: name, space: spaceReg, typ: f.typ, size: typeSizes[f.typ], owner: p.f, offset: p.f.registers}
		p.f.registers++
		s.names[name] = v
		return v
	}
	return nil
}

func (p *parser) directive() {
	t := p.tok
	switch t.text {
	case ".version":
		p.advance()
		p.m.version = p.tok.text
		if major, err := strconv.ParseFloat(p.m.version, 64); err != nil || major < 1 || major >= 10 {
			p.fail("version %q is not supported", p.m.version)
		}
		p.advance()
	case ".address_size":
		p.advance()
		if !p.take("64") {
			p.fail("only addresses of 64 bits are supported, not of %q", p.tok.text)
		}
	case ".target":
		p.advance()
		p.m.target = p.tok.text
		if !strings.HasPrefix(p.m.target, "sm_") || len(p.m.target) < 5 || strings.Trim(p.m.target[3:], "0123456789af") != "" {
			p.fail("target %q is not supported", p.m.target)
		}
		p.advance()
		for p.take(",") {
			p.word("an option of the target")
		}
	case ".file":
		p.advance()
		n := int(p.integer())
		if p.tok.kind != tokenString {
			p.fail("the name of a file expected, not %q", p.tok.text)
		}
		p.m.files[n] = p.advance().text
		for p.take(",") {
			p.integer()
		}
	case ".section":
		p.advance()
		p.advance()
		if !p.is("{") {
			p.fail("%q expected, not %q", "{", p.tok.text)
		}
		p.lexer.skipBlock()
		p.advance()
	case ".pragma", ".alias":
		p.skipTo(";")
	case ";":
		p.advance()
	default:
		if t.kind == tokenWord && t.text[0] == '.' {
			p.definition()
			return
		}
		p.fail("a directive such as .entry expected, not %q", t.text)
	}
}

func (p *parser) skipTo(end string) {
	for !p.take(end) {
		if p.tok.kind == tokenEnd {
			p.fail("%q expected, not the end of the text", end)
		}
		p.advance()
	}
}

func (p *parser) definition() {
	extern := false
	for {
		switch p.tok.text {
		case ".extern":
			extern = true
			p.advance()
		case ".visible", ".weak", ".common":
			p.advance()
		case ".entry", ".func":
			p.function(extern)
			return
		case ".global", ".const", ".shared":
			p.variable(extern)
			return
		case ".tex", ".texref", ".samplerref", ".surfref", ".sampler", ".surf":
			p.fail("textures and surfaces are not supported: %s", p.tok.text)
		default:
			p.fail("a directive such as .entry expected, not %q", p.tok.text)
		}
	}
}

func (p *parser) integer() int64 {
	negative := p.take("-")
	if p.tok.kind != tokenNumber {
		p.fail("a number expected, not %q", p.tok.text)
	}
	u, err := strconv.ParseUint(strings.TrimRight(p.tok.text, "U"), 0, 64)
	if err != nil {
		p.fail("the number %q is no integer of 64 bits", p.tok.text)
	}
	p.advance()
	if negative {
		return -int64(u)
	}
	return int64(u)
}

// declaration reads ".space .align n .type names" and makes the variables.
func (p *parser) declaration() (out []*variable) {
	v := variable{space: spaceNames[p.tok.text], owner: p.f}
	if v.space == spaceGeneric {
		p.fail("a state space such as .reg expected, not %q", p.tok.text)
	}
	p.advance()
	elems := 1
	for p.tok.kind == tokenWord && p.tok.text[0] == '.' {
		t := p.advance().text
		switch t {
		case ".align":
			n := p.integer()
			if n <= 0 || n > 1<<20 || bits.OnesCount64(uint64(n)) != 1 {
				p.fail("an alignment of %d; it must be a power of two", n)
			}
			if !v.pointer { // behind .ptr it belongs to what is pointed to
				v.align = int(n)
			}
		case ".ptr":
			v.pointer = true
		case ".global", ".shared", ".const", ".local", ".noalias":
		case ".attribute":
			p.skipTo(")")
		case ".v2", ".v4":
			elems = int(t[2] - '0')
			if v.space == spaceReg {
				p.fail("vector registers are not supported")
			}
		case ".texref", ".samplerref", ".surfref":
			p.fail("textures and surfaces are not supported: %s", t)
		default:
			v.size = typeSizes[t[1:]]
			if v.size == 0 {
				p.fail("a type such as .b32 expected, not %q", t)
			}
			v.typ = t[1:]
		}
	}
	if v.typ == "" {
		p.fail("a type such as .b32 expected, not %q", p.tok.text)
	}
	for {
		w := v
		w.size *= elems
		w.name = p.word("a name")
		if p.take("<") {
			n := p.integer()
			p.want(">")
			if n < 0 || n > math.MaxInt32 {
				p.fail("%d registers", n)
			}
			w.size = int(n)
			s := &p.scopes[len(p.scopes)-1]
			if s.families == nil {
				s.families = map[string]*variable{}
			}
			s.families[stem(w.name)] = &w
			return p.more(append(out, &w), &v, elems)
		}
		element := w.size
		for p.take("[") {
			if p.take("]") {
				w.unsized = true
				w.size = 0
				continue
			}
			n := p.integer()
			p.want("]")
			if n < 0 || n > maxVariable || w.size > 0 && n > int64(maxVariable/w.size) {
				p.fail("variable %s is too large", w.name)
			}
			w.size *= int(n)
		}
		if w.align == 0 {
			w.align = element
		}
		if w.space == spaceReg {
			if p.f == nil {
				p.fail("a register outside of a function")
			}
			w.offset = p.f.registers
			p.f.registers++
		}
		p.scopes[len(p.scopes)-1].names[w.name] = &w
		out = append(out, &w)
		if p.take("=") {
			p.initials(&w)
		}
		if w.space == spaceParam && p.f != nil && !p.f.hasBody || !p.take(",") {
			return out
		}
	}
}

// more reads further families of registers.
func (p *parser) more(out []*variable, v *variable, elems int) []*variable {
	for p.take(",") {
		w := *v
		w.name = p.word("a name")
		if !p.take("<") {
			w.size = typeSizes[w.typ]
			w.offset = p.f.registers
			p.f.registers++
			p.scopes[len(p.scopes)-1].names[w.name] = &w
			continue
		}
		n := p.integer()
		p.want(">")
		if n < 0 || n > math.MaxInt32 {
			p.fail("%d registers", n)
		}
		w.size = int(n)
		p.scopes[len(p.scopes)-1].families[stem(w.name)] = &w
	}
	return out
}

func (p *parser) initials(v *variable) {
	offset, size := 0, typeSizes[v.typ]
	var item func(depth int)
	item = func(depth int) {
		if p.take("{") {
			if depth > 8 {
				p.fail("an array of more than 8 dimensions")
			}
			for !p.take("}") {
				item(depth + 1)
				if !p.is("}") {
					p.want(",")
				}
			}
			return
		}
		in := initial{offset: offset, size: size, line: p.tok.line}
		offset += size
		symbol := func() {
			if p.take("generic") {
				p.want("(")
				in.generic = true
				in.symbol = p.word("a name")
				p.want(")")
			} else {
				in.symbol = p.word("a name")
			}
			if p.take("+") {
				in.add = p.integer()
			} else if p.is("-") {
				in.add = p.integer()
			}
		}
		switch {
		case p.tok.kind == tokenNumber && p.peek().text == "(": // a byte of an address: 0xFF00(symbol)
			mask, err := strconv.ParseUint(p.advance().text, 0, 64)
			if err != nil || mask == 0 {
				p.fail("a mask such as 0xFF expected")
			}
			in.shift = bits.TrailingZeros64(mask) / 8 * 8
			p.want("(")
			symbol()
			p.want(")")
		case p.tok.kind == tokenWord:
			symbol()
		default:
			o := p.immediate()
			in.bits = immediateBits(&o, v.typ)
		}
		if v.unsized {
			v.size = max(v.size, offset)
		} else if offset > v.size {
			p.fail("more values than variable %s has room for", v.name)
		}
		v.init = append(v.init, in)
	}
	item(0)
	if len(v.init) > 0 && v.unsized {
		v.unsized = false
	}
}

func (p *parser) variable(extern bool) {
	for _, v := range p.declaration() {
		v.extern = extern
		if len(v.init) > 0 && v.space != spaceGlobal && v.space != spaceConst {
			p.fail("variable %s has a first value, which only global variables and constants may have", v.name)
		}
		switch {
		case v.space == spaceReg:
		case v.space == spaceLocal || v.space == spaceParam:
			if p.f == nil {
				p.fail("variable %s of the space %s outside of a function", v.name, "local")
			}
			p.f.locals = append(p.f.locals, v)
		default: // shared, global and const belong to the module even where a function has them
			if p.f == nil {
				if old := p.m.globals[v.name]; old != nil {
					if !v.extern && old.extern {
						*old = *v
					}
					v = old
					p.scopes[0].names[v.name] = old
					continue
				}
				p.m.globals[v.name] = v
			}
			if p.f != nil && v.space == spaceShared {
				p.f.shared = append(p.f.shared, v)
			}
			p.m.inOrder = append(p.m.inOrder, v)
		}
	}
	p.want(";")
}

func (p *parser) parameters() (out []*variable) {
	p.want("(")
	for !p.take(")") {
		if !p.take("_") {
			out = append(out, p.declaration()...)
		}
		if !p.is(")") {
			p.want(",")
		}
	}
	return out
}

func (p *parser) function(extern bool) {
	f := &function{extern: extern, entry: p.tok.text == ".entry", index: len(p.m.order), line: p.tok.line}
	p.advance()
	p.f = f
	p.push()
	defer func() {
		p.pop()
		p.f = nil
	}()
	if p.is("(") {
		f.rets = p.parameters()
	}
	f.name = p.word("the name of a function")
	if p.is("(") {
		f.params = p.parameters()
	}
	for i, v := range f.params {
		v.index = i
	}
	for !p.is("{") && !p.is(";") {
		switch t := p.advance(); t.text {
		case ".reqntid":
			f.reqBlock = p.dimensions()
		case ".maxntid":
			f.maxBlock = p.dimensions()
		case ".minnctapersm", ".maxnctapersm", ".maxnreg":
			p.integer()
		case ".noreturn", ".unique":
		case ".pragma":
			p.skipTo(";")
		case ".reqnctapercluster", ".explicitcluster", ".maxclusterrank", ".blocksareclusters":
			p.fail("clusters are not supported: %s", t.text)
		case ".attribute":
			p.skipTo(")")
		default:
			p.fail("%q expected, not %q", "{", t.text)
		}
	}
	if p.take(";") {
		if p.m.functions[f.name] == nil {
			p.m.functions[f.name] = f
			p.m.order = append(p.m.order, f)
		}
		return
	}
	if old := p.m.functions[f.name]; old != nil {
		if old.hasBody {
			p.fail("function %s is there twice", f.name)
		}
		f.index = old.index
		p.m.order[f.index] = f
	} else {
		p.m.order = append(p.m.order, f)
	}
	p.m.functions[f.name] = f
	f.hasBody = true
	end := strings.Index(p.text[p.at:], "\n}")
	f.body = make([]statement, 0, max(16, strings.Count(p.text[p.at:p.at+max(end, 0)], ";")))
	p.block(-1)
}

// rename makes the labels of a block, and its tables of labels, different from those of others.
func rename(body []statement, tables []branchTable, labels map[string]string) {
	change := func(name *string) {
		if to := labels[*name]; to != "" {
			*name = to
		}
	}
	for i := range body {
		s := &body[i]
		change(&s.label)
		if n := len(s.args); n == 1 || n == 2 && strings.HasPrefix(s.opcode, "brx.") {
			if target := &s.args[n-1]; target.kind == operandName {
				change(&target.name)
			}
		}
	}
	for i := range tables {
		change(&tables[i].name)
		for k := range tables[i].targets {
			change(&tables[i].targets[k])
		}
	}
}

func (p *parser) dimensions() (n [3]int) {
	n = [3]int{1, 1, 1}
	for i := range n {
		v := p.integer()
		if v < 1 || v > 1024 {
			p.fail("a block of %d threads", v)
		}
		n[i] = int(v)
		if !p.take(",") {
			break
		}
	}
	return n
}

func (p *parser) block(loc int32) int32 {
	p.want("{")
	p.push()
	first, firstTable := len(p.f.body), len(p.f.tables)
	var labels map[string]string // of this block, which others do not see
	declare := func(t token) {
		if labels == nil {
			labels = map[string]string{}
		}
		if labels[t.text] != "" {
			p.fail("label %s is there twice", t.text)
		}
		p.renamed++
		labels[t.text] = fmt.Sprintf("%s#%d", t.text, p.renamed)
	}
	defer func() {
		p.pop()
		if len(p.scopes) > 2 && labels != nil {
			rename(p.f.body[first:], p.f.tables[firstTable:], labels)
		}
	}()
	for !p.take("}") {
		t := p.tok
		switch {
		case t.kind == tokenEnd:
			p.fail("%q expected, not the end of the text", "}")
		case t.kind == tokenMark && t.text == "{":
			loc = p.block(loc)
		case t.kind == tokenMark && t.text == ";":
			p.advance()
		case t.kind == tokenWord && t.text[0] == '.':
			switch t.text {
			case ".loc":
				loc = p.location()
			case ".pragma":
				p.skipTo(";")
			default:
				p.variable(false)
			}
		case t.kind == tokenWord && p.peek().text == ":":
			p.advance()
			p.advance()
			switch p.tok.text {
			case ".branchtargets":
				p.advance()
				declare(t)
				table := branchTable{name: t.text}
				for !p.take(";") {
					table.targets = append(table.targets, p.word("a label"))
					if !p.is(";") {
						p.want(",")
					}
				}
				p.f.tables = append(p.f.tables, table)
			case ".callprototype", ".calltargets":
				p.skipTo(";")
			default:
				declare(t)
				p.f.body = append(p.f.body, statement{label: t.text, loc: loc, line: t.line})
			}
		default:
			p.statement(loc)
		}
	}
	return loc
}

func (p *parser) location() int32 {
	p.want(".loc")
	l := location{file: int(p.integer()), line: int(p.integer()), inlined: -1}
	column := p.integer()
	if p.take(",") {
		p.want("function_name")
		p.word("a label")
		if p.take("+") {
			p.integer()
		}
		p.want(",")
		p.want("inlined_at")
		at := location{file: int(p.integer()), line: int(p.integer()), inlined: -1}
		p.integer()
		// the call's own place may be inlined itself: the last one with this line
		place := location{at.file, at.line, -2}
		i, ok := p.places[place]
		if !ok {
			p.m.locations = append(p.m.locations, at)
			i = int32(len(p.m.locations) - 1)
			p.places[place] = i
		}
		l.inlined = i
	}
	_ = column
	i, ok := p.places[l]
	if !ok {
		p.m.locations = append(p.m.locations, l)
		i = int32(len(p.m.locations) - 1)
		p.places[l] = i
	}
	p.places[location{l.file, l.line, -2}] = i
	return i
}

func (p *parser) statement(loc int32) {
	s := statement{loc: loc, line: p.tok.line}
	if p.take("@") {
		s.guardNot = p.take("!")
		name := p.word("a predicate")
		if s.guard = p.lookup(name); s.guard == nil || s.guard.typ != "pred" {
			p.fail("a predicate expected, not %q", name)
		}
	}
	if s.opcode = p.word("an instruction"); s.opcode[0] == '%' || s.opcode[0] == '.' {
		p.fail("an instruction expected, not %q", s.opcode)
	}
	if s.opcode == "call" || strings.HasPrefix(s.opcode, "call.") {
		if p.take("(") {
			s.rets = p.operands(")")
			p.want(",")
		}
		s.args = append(s.args, p.operand(0))
		if p.take(",") {
			if p.take("(") {
				s.args = append(s.args, p.operands(")")...)
			}
			p.skipTo(";") // a prototype or a list of targets
		} else {
			p.want(";")
		}
	} else {
		s.args = p.operands(";")
	}
	p.f.body = append(p.f.body, s)
}

func (p *parser) operands(end string) []operand {
	if p.take(end) {
		return nil
	}
	var few [6]operand // most instructions have no more
	list := few[:0]
	for {
		list = append(list, p.operand(0))
		if p.take(end) {
			break
		}
		p.want(",")
	}
	return p.keep(list...)
}

// keep returns a copy of operands, which shares a piece of memory with others.
func (p *parser) keep(list ...operand) []operand {
	if len(p.room) < len(list) {
		p.room = make([]operand, max(256, len(list)))
	}
	n := copy(p.room, list)
	out := p.room[:n:n]
	p.room = p.room[n:]
	return out
}

func (p *parser) immediate() operand {
	o := operand{kind: operandInt, minus: p.take("-")}
	if p.tok.kind != tokenNumber {
		p.fail("a number expected, not %q", p.tok.text)
	}
	s := p.tok.text
	var err error
	switch {
	case len(s) == 10 && s[0] == '0' && (s[1] == 'f' || s[1] == 'F'):
		o.kind = operandFloat32
		o.bits, err = strconv.ParseUint(s[2:], 16, 32)
		if o.minus {
			o.bits ^= 1 << 31
		}
	case len(s) == 18 && s[0] == '0' && (s[1] == 'd' || s[1] == 'D'):
		o.kind = operandFloat64
		o.bits, err = strconv.ParseUint(s[2:], 16, 64)
		if o.minus {
			o.bits ^= 1 << 63
		}
	case strings.IndexByte(s, '.') >= 0:
		var f float64
		o.kind = operandDecimal
		f, err = strconv.ParseFloat(s, 64)
		if o.minus {
			f = -f
		}
		o.bits = math.Float64bits(f)
	default:
		o.bits, err = strconv.ParseUint(strings.TrimRight(s, "U"), 0, 64)
		if o.minus {
			o.bits = -o.bits
		}
	}
	if err != nil {
		p.fail("a number expected, not %q", s)
	}
	p.advance()
	return o
}

// immediateBits returns a number as the bits of a type.
func immediateBits(o *operand, typ string) uint64 {
	wide := typeSizes[typ] == 8
	switch o.kind {
	case operandFloat32:
		if typ == "f64" {
			return math.Float64bits(float64(math.Float32frombits(uint32(o.bits))))
		}
		return o.bits
	case operandFloat64, operandDecimal:
		if wide {
			return o.bits
		}
		return uint64(math.Float32bits(float32(math.Float64frombits(o.bits))))
	}
	return o.bits
}

func (p *parser) operand(depth int) operand {
	if depth > 8 {
		p.fail("operands are nested more than 8 deep")
	}
	t := p.tok
	switch {
	case t.kind == tokenMark && t.text == "{":
		p.advance()
		o := operand{kind: operandVector}
		if p.take("}") {
			return o
		}
		var few [4]operand // most vectors have no more
		list := few[:0]
		for {
			list = append(list, p.operand(depth+1))
			if p.take("}") {
				o.elems = p.keep(list...)
				return o
			}
			p.want(",")
		}
	case t.kind == tokenMark && t.text == "[":
		p.advance()
		base := p.operand(depth + 1)
		o := operand{kind: operandMemory, offset: base.offset, elems: p.keep(base)}
		for p.take(",") { // coordinates of tensors and textures, whose instructions are refused by name
			o.elems = append(o.elems, p.operand(depth+1))
		}
		p.want("]")
		return o
	case t.kind == tokenMark && t.text == "!":
		p.advance()
		o := p.operand(depth + 1)
		o.not = true
		return o
	case t.kind == tokenMark && t.text == "-":
		if p.peek().kind != tokenNumber {
			p.advance()
			o := p.operand(depth + 1)
			o.minus = true
			return o
		}
		return p.immediate()
	case t.kind == tokenNumber:
		o := p.immediate()
		if o.kind == operandInt {
			o.bits = p.sum(o.bits)
		}
		return o
	case t.kind == tokenWord:
		p.advance()
		o := operand{kind: operandName, name: t.text}
		if t.text == "_" {
			o.kind = operandSink
		} else if v := p.lookup(t.text); v != nil {
			o.kind, o.v = operandVar, v
		} else if t.text[0] == '%' || t.text == "WARP_SZ" {
			o.kind = operandSpecial
		}
		o.offset = int64(p.sum(0))
		if p.take("|") {
			second := p.operand(depth + 1)
			o.second = &second
		}
		return o
	}
	p.fail("an operand expected, not %q", t.text)
	return operand{}
}

// sum reads the numbers that are added to a name or a number.
func (p *parser) sum(v uint64) uint64 {
	for p.is("+") || p.is("-") {
		if p.take("+") {
			v += uint64(p.integer())
		} else {
			v += uint64(p.integer())
		}
	}
	return v
}
