package pybuild

/*
#include "calls.h"

static halstream_launch *halstream_launch_at(int64_t address) { return (halstream_launch *)(uintptr_t)address; }
*/
import "C"

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"halstream/bindings/python"
	"halstream/hal"
	"halstream/hal/driver"
	"halstream/ptx"
)

// binaryPrefix stands before an image in hexadecimal digits: strings of the
// extension are text.
const binaryPrefix = "hex:"

// functionIDs are the ids of functions by module and name, for as long as the
// module is open.
var functionIDs = map[*hal.Module]map[string]int64{}

// ModuleLoad loads a program on a device: the text of an assembler, or "hex:" and
// the digits of a binary.
func ModuleLoad(ordinal int64, image string) (id int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (id int64, err error) {
		program := append([]byte(image), 0)
		if digits, binary := strings.CutPrefix(image, binaryPrefix); binary {
			if program, err = hex.DecodeString(digits); err != nil {
				return 0, driver.Errorf(driver.InvalidValue, "load module", "no binary in hexadecimal digits: %s", err)
			}
		} else if image == "" {
			program = nil
		}
		m, err := d.LoadModule(caller(), program)
		if err != nil {
			return 0, err
		}
		return insert(m), nil
	})
}

// ProgramAccesses returns what a kernel of PTX does to the memory behind each parameter, as the text shows it: a letter as
// StreamLaunch has them. It is empty for a program that is no PTX, or of which nothing is known.
func ProgramAccesses(image, name string) (modes string, err error) {
	defer guard(&err)
	digits, _ := strings.CutPrefix(image, binaryPrefix)
	program, err := hex.DecodeString(digits)
	if err != nil {
		return "", raise(driver.Errorf(driver.InvalidValue, "accesses", "no program in hexadecimal digits: %s", err))
	}
	text, _, _ := bytes.Cut(program, []byte{0})
	for _, a := range accessesInText(string(text), name) {
		switch a & (ptx.AccessRead | ptx.AccessWrite) {
		case ptx.AccessRead:
			modes += "r"
		case ptx.AccessWrite:
			modes += "w"
		default:
			modes += "b"
		}
	}
	return modes, nil
}

// accessesInText returns what a kernel of PTX does with its parameters. What is wrong with a program is for its device to say.
func accessesInText(text, name string) []ptx.Access {
	if m, err := ptx.Parse(text); err == nil {
		if k, err := m.Kernel(name); err == nil {
			return k.Accesses()
		}
	}
	return nil
}

// ModuleFunction returns the id of a function of a module, the same one each
// time. It ends with the module.
func ModuleFunction(module int64, name string) (id int64, err error) {
	defer guard(&err)
	caller()
	m, ok := find(module).(*hal.Module)
	if !ok {
		return 0, unknown(module, "find function", "module")
	}
	f, err := m.Function(name)
	if err != nil {
		return 0, raise(err)
	}
	if id, ok := functionIDs[m][name]; ok {
		return id, nil
	}
	if find(module) != m {
		return 0, unknown(module, "find function", "module")
	}
	if functionIDs[m] == nil {
		functionIDs[m] = map[string]int64{}
	}
	id = insert(f)
	functionIDs[m][name] = id
	return id, nil
}

func dropFunctions(m *hal.Module) {
	for _, id := range functionIDs[m] {
		remove(id)
	}
	delete(functionIDs, m)
}

// FunctionThreads returns how many threads a block of a function may have.
func FunctionThreads(id int64) (most int64, err error) {
	return on(id, "threads", "kernel", func(f *hal.Function) (int64, error) { return int64(f.Threads()), nil })
}

// FunctionShared returns how many bytes of dynamic shared memory a block of a function may have.
func FunctionShared(id int64) (most int64, err error) {
	return on(id, "shared", "kernel", func(f *hal.Function) (int64, error) { return int64(f.Shared()), nil })
}

// FunctionParameters returns the size of each parameter of a function in bytes, with spaces
// between them; "?" if its program does not say.
func FunctionParameters(id int64) (sizes string, err error) {
	return on(id, "parameters", "kernel", func(f *hal.Function) (string, error) {
		list, known := f.Parameters()
		if !known {
			return "?", nil
		}
		words := make([]string, len(list))
		for i, size := range list {
			words[i] = strconv.Itoa(size)
		}
		return strings.Join(words, " "), nil
	})
}

// FunctionAccesses returns a letter for each parameter of a function, as StreamLaunch takes them: what the
// function does to the memory behind it, "" where its program does not say.
func FunctionAccesses(id int64) (modes string, err error) {
	return on(id, "accesses", "kernel", func(f *hal.Function) (string, error) { return f.Accesses(), nil })
}

// FunctionAttributes returns what the device's library knows of a function, with spaces between the figures: the
// shared, constant and local memory in bytes, the registers, and the versions of PTX and binary. -1 is not known.
func FunctionAttributes(id int64) (figures string, err error) {
	return on(id, "attributes", "kernel", func(f *hal.Function) (string, error) {
		a, err := f.Attributes()
		return fmt.Sprint(a.Shared, a.Constant, a.Local, a.Registers, a.PTXVersion, a.BinaryVersion), err
	})
}

// ModuleGlobal returns the address and the size in bytes of a variable of a module, with a space between them.
func ModuleGlobal(module int64, name string) (memory string, err error) {
	return on(module, "find variable", "module", func(m *hal.Module) (string, error) {
		r, err := m.Global(caller(), name)
		return fmt.Sprint(r.Start, r.Size), err
	})
}

// StreamLaunch enqueues a run of a function and returns 0; 1, and nothing is
// enqueued, if an argument's memory is not where the stream can use it: the caller
// knows better how to say so. launch is the address of a halstream_launch (calls.h), which
// has a letter for each cell of the arguments, '-' for a value; the others are an address and, in the
// second half, the bytes behind it that the kernel reads (r), writes (w) or both (b).
// A capital letter says that the caller has looked where the memory is.
func StreamLaunch(id, functionID, launch int64) (misplaced int64, err error) {
	defer guard(&err)
	const op = "launch"
	t := caller()
	s, err := stream(t, id, op)
	if err != nil {
		return 0, err
	}
	f, ok := find(functionID).(*hal.Function)
	if !ok {
		return 0, unknown(functionID, op, "kernel")
	}
	spec, modes := launchAt(launch)
	if err := checkModes(modes); err != nil {
		return 0, raise(err)
	}
	if f.Simulated() {
		spec.Site = python.ProgramLine()
	}
	placed, err := s.LaunchPacked(t, f, spec, modes)
	if !placed {
		return 1, nil
	}
	return enqueued(t, s, err)
}

// checkModes rejects letters that say nothing of an argument.
func checkModes(modes string) error {
	for i := range len(modes) {
		switch modes[i] {
		case '-', 'r', 'w', 'b', 'R', 'W', 'B':
		default:
			return driver.Errorf(driver.InvalidValue, "launch", "%q is no mode of an argument", modes[i:i+1])
		}
	}
	return nil
}

// launchAt returns the halstream_launch at an address, whose parts stay as they are during the call only.
func launchAt(address int64) (spec hal.LaunchSpec, modes string) {
	l := C.halstream_launch_at(C.int64_t(address))
	n := (*[11]uint32)(unsafe.Pointer(l.size))
	modes = unsafe.String((*byte)(unsafe.Pointer(l.modes)), int(l.count))
	return hal.LaunchSpec{Grid: [3]uint32(n[:3]), Block: [3]uint32(n[3:6]), Shared: n[6], Cooperative: n[7] != 0,
		Cluster: [3]uint32(n[8:]),
		Args:    unsafe.Slice((*byte)(l.cells), int(l.count)*driver.Cell)}, modes
}
