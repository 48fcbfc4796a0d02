package libcuda

// #include <stdlib.h>
import "C"

import (
	"regexp"
	"strings"
	"sync"
	"unsafe"
)

// linker puts programs of PTX together. What it gives is PTX, which every function that loads a program takes.
type linker struct {
	handle  uintptr
	options jitOptions

	mu     sync.Mutex
	texts  []string
	result *C.char
}

func linkerOf(handle uintptr) (*linker, error) { return find[*linker](handle, invalidHandle, "linker") }

// onLinker returns a function for a linker that is its first argument.
func onLinker(f func(l *linker, a *args) error) func(c *caller, a *args) error {
	return func(_ *caller, a *args) error {
		l, err := linkerOf(a.handle(0))
		if err != nil {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		return f(l, a)
	}
}

// Kinds of input. Source: CUDA driver API, CUjitInputType.
const (
	inputCubin     = 0
	inputPTX       = 1
	inputFatBinary = 2
	inputObject    = 3
	inputLibrary   = 4
	inputNVVM      = 5
)

var linkFunctions = []function{
	{name: "cuLinkCreate_v2", version: 6050, firstVersion: 5050, call: func(_ *caller, a *args) error {
		if err := a.need(3); err != nil {
			return err
		}
		l := &linker{options: optionsOf(a, 0, 1, 2)}
		l.handle = newHandle(l)
		put(a, 3, l.handle)
		return nil
	}},
	{name: "cuLinkAddData_v2", version: 6050, firstVersion: 5050, call: onLinker(func(l *linker, a *args) error {
		if err := a.need(2); err != nil {
			return err
		}
		if a[3] > maxBytes {
			return refuse(invalidValue, "%d bytes are more than a program can have", a[3])
		}
		return l.add(a.int(1), func() (string, error) { return programOf(list[byte](a, 2, a[3])) })
	})},
	{name: "cuLinkAddFile_v2", version: 6050, firstVersion: 5050, call: onLinker(func(l *linker, a *args) error {
		if err := a.need(2); err != nil {
			return err
		}
		return l.add(a.int(1), func() (string, error) { return programOfFile(a.text(2)) })
	})},
	{name: "cuLinkComplete", version: 5050, call: onLinker(func(l *linker, a *args) error {
		if err := a.need(1); err != nil {
			return err
		}
		text := linked(l.texts)
		_, err := kernelNames(text)
		if err := l.options.finishCompile(err); err != nil {
			return err
		}
		C.free(unsafe.Pointer(l.result))
		l.result = C.CString(text)
		put(a, 1, l.result)
		put(a, 2, uint64(len(text)+1))
		return nil
	})},
	{name: "cuLinkDestroy", version: 5050, call: onLinker(func(l *linker, a *args) error {
		C.free(unsafe.Pointer(l.result))
		l.result = nil
		removeHandle(l.handle)
		return nil
	})},
}

// add adds a program, which is of a kind.
func (l *linker) add(kind int, program func() (string, error)) error {
	switch kind {
	case inputCubin, inputPTX, inputFatBinary:
	case inputObject, inputLibrary:
		return l.options.finishCompile(refuse(noBinary, "object files and libraries are machine code; link PTX"))
	case inputNVVM:
		return l.options.finishCompile(refuse(notSupported, "NVVM IR is not compiled here; give PTX"))
	default:
		return l.options.finishCompile(refuse(invalidValue, "there is no kind %d of input", kind))
	}
	text, err := program()
	if err == nil {
		l.texts = append(l.texts, text)
	}
	return l.options.finishCompile(err)
}

var (
	header   = regexp.MustCompile(`(?m)^\s*\.(version|target|address_size)\b[^\n]*\n`)
	weak     = regexp.MustCompile(`(?ms)^[ \t]*\.weak\s+\.func\s+(?:\([^)]*\)\s*)?([\w$.]+)[^{;]*\{.*?^\}`)
	declared = regexp.MustCompile(`(?m)^\s*\.extern\s+\.(?:global|const)[^;]*;\s*$`)
)

// linked puts texts of PTX together: the first one has the version and the target. Of weak functions with one name the
// first is taken.
func linked(texts []string) string {
	var all strings.Builder
	seen := map[string]bool{}
	for i, text := range texts {
		if i > 0 {
			text = header.ReplaceAllString(text, "")
		}
		text = strings.ReplaceAll(text, deviceRuntime, "")
		if len(texts) > 1 {
			text = declared.ReplaceAllString(text, "")
		}
		all.WriteString(weak.ReplaceAllStringFunc(text, func(function string) string {
			name := weak.FindStringSubmatch(function)[1]
			if seen[name] {
				return ""
			}
			seen[name] = true
			return function
		}))
		all.WriteString("\n")
	}
	return withRuntime(all.String())
}
