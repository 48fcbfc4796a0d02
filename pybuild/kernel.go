package pybuild

import (
	"encoding/hex"
	"strconv"
	"strings"

	"halstream/hal"
	"halstream/hal/driver"
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
	defer guard(&err)
	d, err := device(ordinal)
	if err != nil {
		return 0, err
	}
	program := append([]byte(image), 0)
	if digits, binary := strings.CutPrefix(image, binaryPrefix); binary {
		if program, err = hex.DecodeString(digits); err != nil {
			return 0, raise(driver.Errorf(driver.InvalidValue, "load module", "no binary in hexadecimal digits: %s", err))
		}
	} else if image == "" {
		program = nil
	}
	m, err := d.LoadModule(caller(), program)
	if err != nil {
		return 0, raise(err)
	}
	return insert(m), nil
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

func function(id int64, op string) (*hal.Function, error) {
	if f, ok := find(id).(*hal.Function); ok {
		return f, nil
	}
	return nil, unknown(id, op, "kernel")
}

// FunctionThreads returns how many threads a block of a function may have.
func FunctionThreads(id int64) (most int64, err error) {
	defer guard(&err)
	f, err := function(id, "threads")
	if err != nil {
		return 0, err
	}
	return int64(f.Threads()), nil
}

// StreamLaunch enqueues a run of a function. shape is "gx gy gz bx by bz shared
// cooperative"; args the hexadecimal digits of the arguments, each at the start
// of 16 bytes; ranges as in StreamNative.
func StreamLaunch(id, functionID int64, shape, args, ranges string) (zero int64, err error) {
	defer guard(&err)
	const op = "launch"
	t := caller()
	s, err := stream(t, id, op)
	if err != nil {
		return 0, err
	}
	f, err := function(functionID, op)
	if err != nil {
		return 0, err
	}
	spec, err := launchSpec(shape, args)
	if err != nil {
		return 0, raise(err)
	}
	reads, writes, err := accesses(ranges)
	if err != nil {
		return 0, err
	}
	return enqueued(t, s, s.Launch(t, f, spec, reads, writes))
}

func launchSpec(shape, args string) (spec hal.LaunchSpec, err error) {
	fields := strings.Fields(shape)
	var n [8]uint32
	if len(fields) != len(n) {
		return spec, driver.Errorf(driver.InvalidValue, "launch", "%q is no shape of a launch", shape)
	}
	for i, text := range fields {
		v, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return spec, driver.Errorf(driver.InvalidValue, "launch", "%s is no dimension of a launch", text)
		}
		n[i] = uint32(v)
	}
	cells, err := hex.DecodeString(args)
	if err != nil {
		return spec, driver.Errorf(driver.InvalidValue, "launch", "the arguments are no hexadecimal digits: %s", err)
	}
	return hal.LaunchSpec{Grid: [3]uint32(n[:3]), Block: [3]uint32(n[3:6]), Shared: n[6],
		Cooperative: n[7] != 0, Args: cells}, nil
}
