package host

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"halstream/hal/driver"
	"halstream/ptx"
)

// Numbers of the CUDA driver's errors.
const (
	noBinary       = 209 // CUDA_ERROR_NO_BINARY_FOR_GPU
	invalidPTX     = 218 // CUDA_ERROR_INVALID_PTX
	notFound       = 500 // CUDA_ERROR_NOT_FOUND
	illegalAddress = 700 // CUDA_ERROR_ILLEGAL_ADDRESS
	assertion      = 710 // CUDA_ERROR_ASSERT
	misaligned     = 716 // CUDA_ERROR_MISALIGNED_ADDRESS
	launchFailed   = 719 // CUDA_ERROR_LAUNCH_FAILED, of all other faults
)

// codes are the driver's numbers for what a kernel did wrong.
var codes = map[string]int{
	"bounds": illegalAddress, "shared bounds": illegalAddress, "local bounds": illegalAddress, "parameter bounds": illegalAddress,
	"no space": illegalAddress, "misaligned": misaligned, "assert": assertion,
}

func withCode(code int, op string, err error) *driver.Error {
	made := driver.Errorf(driver.InvalidValue, op, "%v", err)
	made.Code = code
	return made
}

// module is a program: PTX, which the processor executes.
type module struct {
	dev *Device
	m   *ptx.Module
}

// Load implements driver.KernelDevice.
func (d *Device) Load(image []byte) (driver.Module, error) {
	const op = "load module"
	text, _, _ := strings.Cut(string(image), "\x00")
	if strings.HasPrefix(text, "\x7fELF") || strings.HasPrefix(text, "\x50\xed\x55\xba") {
		return nil, withCode(noBinary, op, errors.New("the program is machine code of a GPU, which the host device cannot run; "+
			"give PTX or source"))
	}
	m, err := ptx.Parse(text)
	if err != nil {
		return nil, withCode(invalidPTX, op, err)
	}
	for _, name := range m.Kernels() { // a driver finds the mistakes of all kernels at the load
		if _, err = m.Kernel(name); err != nil {
			return nil, withCode(invalidPTX, op, err)
		}
	}
	return &module{dev: d, m: m}, nil
}

// Function implements driver.Module.
func (p *module) Function(name string) (driver.Function, error) {
	k, err := p.m.Kernel(name)
	if err != nil {
		return nil, withCode(notFound, "find function", err)
	}
	return &kernel{p, k}, nil
}

// Global implements driver.Module.
func (p *module) Global(name string) (start, size uint64, err error) {
	start, bytes, ok := p.m.Global(name)
	if !ok {
		return 0, 0, withCode(notFound, "find variable", fmt.Errorf("the program has no variable %s", name))
	}
	return start, uint64(bytes), nil
}

// Close implements driver.Module: the collector frees it.
func (p *module) Close() {}

type kernel struct {
	p *module
	k *ptx.Kernel
}

// Threads implements driver.Function.
func (k *kernel) Threads() int { return k.k.MaxThreads() }

// Shared implements driver.Function.
func (k *kernel) Shared() int { return max(0, ptx.MaxShared-k.k.SharedBytes()) }

// Parameters implements driver.Function.
func (k *kernel) Parameters() []int {
	sizes := make([]int, 0, len(k.k.Params()))
	for _, p := range k.k.Params() {
		sizes = append(sizes, p.Size)
	}
	return sizes
}

// Places implements driver.SimulatedFunction.
func (k *kernel) Places() []int {
	places := make([]int, 0, len(k.k.Params()))
	for _, p := range k.k.Params() {
		places = append(places, p.Offset)
	}
	return places
}

// Accesses implements driver.SimulatedFunction.
func (k *kernel) Accesses() string {
	letters := make([]byte, 0, len(k.k.Params()))
	for _, a := range k.k.Accesses() {
		letter := byte('-')
		switch {
		case a&ptx.AccessUnknown != 0, a&(ptx.AccessRead|ptx.AccessWrite) == ptx.AccessRead|ptx.AccessWrite:
			letter = 'b'
		case a&ptx.AccessRead != 0:
			letter = 'r'
		case a&ptx.AccessWrite != 0:
			letter = 'w'
		}
		letters = append(letters, letter)
	}
	return string(letters)
}

// Attributes implements driver.Function.
func (k *kernel) Attributes() (driver.Attributes, error) {
	made := driver.Attributes{Shared: k.k.SharedBytes(), Constant: k.p.m.ConstantBytes(), Local: k.k.LocalBytes(),
		Registers: k.k.Registers(), BinaryVersion: 10*capability[0] + capability[1]}
	made.PTXVersion, _ = strconv.Atoi(strings.TrimRight(strings.TrimPrefix(k.p.m.Target(), "sm_"), "af"))
	return made, nil
}

// Prepare implements driver.SimulatedFunction.
func (k *kernel) Prepare(l driver.Launch, memory []driver.Extent) (driver.PreparedLaunch, error) {
	const op = "launch"
	if l.Cluster != [3]uint32{} && l.Cluster != [3]uint32{1, 1, 1} {
		return nil, driver.Errorf(driver.NotSupported, op, "the host device has no clusters of blocks: it is one of capability 8.0")
	}
	params := make([]byte, k.k.ParamBytes())
	cell := 0
	for _, p := range k.k.Params() {
		copy(params[p.Offset:p.Offset+p.Size], l.Args[cell*driver.Cell:])
		cell += driver.Cells(p.Size)
	}
	ranges, err := k.p.dev.eng.kernelMemory.of(memory)
	if err != nil {
		return nil, driver.Errorf(driver.OutOfMemory, op, "%v", err)
	}
	run := &kernelRun{k: k, l: ptx.Launch{Grid: three(l.Grid), Block: three(l.Block), Shared: int(l.Shared), Params: params,
		Memory: ranges, Limit: k.p.dev.eng.kernelLimit}}
	if err := k.k.Check(&run.l); err != nil {
		return nil, driver.Errorf(driver.InvalidValue, op, "%v", err)
	}
	return run, nil
}

// kernelMemory keeps the latest list of memory in the form in which kernels take it: launches are given the same list until
// memory changes.
type kernelMemory struct {
	mu     sync.Mutex
	list   []driver.Extent
	memory *ptx.Memory
}

// of returns a list as kernels take it.
func (m *kernelMemory) of(list []driver.Extent) (*ptx.Memory, error) {
	if len(list) == 0 {
		return nil, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.list) == len(list) && &m.list[0] == &list[0] {
		return m.memory, nil
	}
	ranges := make([]ptx.Range, len(list))
	for i, e := range list {
		ranges[i] = ptx.Range(e)
	}
	made, err := ptx.NewMemory(ranges)
	if err == nil {
		m.list, m.memory = list, made
	}
	return made, err
}

func three(n [3]uint32) [3]int { return [3]int{int(n[0]), int(n[1]), int(n[2])} }

// kernelRun is a launch.
type kernelRun struct {
	k *kernel
	l ptx.Launch
}

// Run implements driver.PreparedLaunch. On real threads several of them share the blocks; under a
// deterministic schedule the blocks run one after the other.
func (r *kernelRun) Run(check bool) (ran driver.Ran) {
	l := r.l
	if check {
		l.Flags |= ptx.FlagRecord | ptx.FlagShared | ptx.FlagSync
	}
	run, err := r.k.k.Start(l)
	if err != nil {
		return driver.Ran{Fault: withCode(launchFailed, "launch", err)}
	}
	defer run.Close()
	var helpers sync.WaitGroup
	if eng := r.k.p.dev.eng; eng.parallel.Load() {
		blocks := uint64(l.Grid[0]) * uint64(l.Grid[1]) * uint64(l.Grid[2])
		for range min(uint64(eng.engines), blocks) - 1 {
			helpers.Go(run.Work)
		}
	}
	run.Work()
	helpers.Wait()
	report, err := run.Report()
	if report != nil {
		_, _ = os.Stdout.WriteString(report.Output) // of printf; a closed output is the program's own affair
		ran.Reads, ran.Writes = driverExtents(report.Reads), driverExtents(report.Writes)
		ran.Inputs = driverExtents(report.Inputs)
		for _, f := range report.Findings {
			ran.Findings = append(ran.Findings, driver.KernelFinding{Check: f.Check, Place: f.Place, Text: f.Error()})
		}
	}
	if err != nil {
		code := launchFailed
		if found, ok := errors.AsType[*ptx.Fault](err); ok && codes[found.Kind] != 0 {
			code = codes[found.Kind]
		}
		ran.Fault = withCode(code, "launch", err)
	}
	return ran
}

func driverExtents(ranges []ptx.Range) []driver.Extent {
	list := make([]driver.Extent, len(ranges))
	for i, r := range ranges {
		list[i] = driver.Extent(r)
	}
	return list
}
