package program

// #include <stdlib.h>
// #include "symbols.h"
import "C"

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"halstream/bindings/records"
)

// frame is a place in the code of the process.
type frame struct {
	records.Frame        // without debug information it has no file
	module        string // the program or library, and the offset there
}

// text returns a frame as reports show it.
func (f frame) text() string {
	text := f.module
	if f.File != "" {
		text = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	if f.Function != "" {
		text += ", in " + f.Function
	}
	if f.File != "" {
		text += " (" + f.module + ")"
	}
	return text
}

// module is what a file of code of the process tells of its addresses.
type module struct {
	functions []elf.Symbol // in the order of their addresses
	lines     *dwarf.Data  // nil without debug information
	fixed     bool         // linked for one place in memory: the file has the addresses themselves
}

// modules are those that were asked for, by their files.
var modules struct {
	sync.Mutex
	by map[string]*module
}

func moduleOf(path string) *module {
	modules.Lock()
	defer modules.Unlock()
	if m, known := modules.by[path]; known {
		return m
	}
	m := &module{}
	if modules.by == nil {
		modules.by = map[string]*module{}
	}
	modules.by[path] = m
	file, err := elf.Open(path)
	if err != nil {
		return m
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil { // a stripped file has only those that others use
		symbols, _ = file.DynamicSymbols()
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Value != 0 {
			m.functions = append(m.functions, s)
		}
	}
	slices.SortFunc(m.functions, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	m.lines, _ = file.DWARF()
	m.fixed = file.Type == elf.ET_EXEC
	return m
}

// function returns the name of the function at an address of the file.
func (m *module) function(address uint64) string {
	i, found := slices.BinarySearchFunc(m.functions, address, func(s elf.Symbol, at uint64) int { return cmp.Compare(s.Value, at) })
	if !found {
		i--
	}
	if i < 0 || m.functions[i].Size != 0 && address >= m.functions[i].Value+m.functions[i].Size {
		return ""
	}
	return sourceName(m.functions[i].Name)
}

// sourceName returns the name of a function as the source has it.
func sourceName(symbol string) string {
	name := C.CString(symbol)
	defer C.free(unsafe.Pointer(name))
	shown := C.hs_program_demangled(name)
	if shown == nil {
		return symbol
	}
	defer C.free(unsafe.Pointer(shown))
	return C.GoString(shown)
}

// line returns the line of the source at an address of the file.
func (m *module) line(address uint64) (file string, line int) {
	if m.lines == nil {
		return "", 0
	}
	unit, err := m.lines.Reader().SeekPC(address)
	if err != nil {
		return "", 0
	}
	reader, err := m.lines.LineReader(unit)
	if err != nil || reader == nil {
		return "", 0
	}
	var entry dwarf.LineEntry
	if reader.SeekPC(address, &entry) != nil && !seekUnsorted(reader, address, &entry) || entry.File == nil {
		return "", 0
	}
	return entry.File.Name, entry.Line
}

// seekUnsorted finds the entry of an address in a table whose sequences do not follow their addresses, as C++ has
// them: each function that several units may have is a sequence of its own.
func seekUnsorted(reader *dwarf.LineReader, address uint64, entry *dwarf.LineEntry) bool {
	reader.Reset()
	var next dwarf.LineEntry
	for inside := false; reader.Next(&next) == nil; inside = !next.EndSequence {
		if inside && entry.Address <= address && address < next.Address {
			return true
		}
		*entry = next
	}
	return false
}

// frameAt returns the place of an address.
func frameAt(address uintptr) frame {
	var base C.uintptr_t
	name := C.hs_program_module(C.uintptr_t(address), &base)
	if name == nil {
		return frame{module: fmt.Sprintf("%#x", address)}
	}
	defer C.free(unsafe.Pointer(name))
	path, offset := C.GoString(name), uint64(address)-uint64(base)
	m, at := moduleOf(path), offset
	if m.fixed {
		at = uint64(address)
	}
	f := frame{Frame: records.Frame{Function: m.function(at)}, module: fmt.Sprintf("%s+%#x", filepath.Base(path), offset)}
	f.File, f.Line = m.line(at)
	return f
}
