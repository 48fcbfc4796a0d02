package libcuda

import (
	"strings"
	"unsafe"
)

// driverVersion is the version of CUDA whose driver the library is.
const driverVersion = 13000

var processFunctions = []function{
	{name: "cuInit", version: 2000, call: initialize, early: true},
	{name: "cuDriverGetVersion", version: 2020, early: true, call: func(_ *caller, a *args) error {
		put(a, 0, int32(driverVersion))
		return a.need(0)
	}},
	{name: "cuGetErrorName", version: 6000, early: true, call: errorText(0)},
	{name: "cuGetErrorString", version: 6000, early: true, call: errorText(1)},
	{name: "cuGetProcAddress", version: 11030, early: true, call: func(c *caller, a *args) error {
		code := int32(0)
		return procAddress(a, &code)
	}, wholeName: true},
	{name: "cuGetProcAddress_v2", version: 12000, early: true, call: func(c *caller, a *args) error {
		found := int32(0)
		err := procAddress(a, &found)
		put(a, 4, found)
		return err
	}},
	// CUDA's runtime, where it is linked statically, asks for tables without documentation; that of cuda.bindings goes on
	// without them.
	{name: "cuGetExportTable", version: 3000, early: true, call: func(_ *caller, a *args) error {
		put(a, 0, uintptr(0))
		return &refusal{code: notSupported, text: "there are no tables without documentation", quiet: true}
	}},
	{name: "cuProfilerStart", version: 4000, call: nothing},
	{name: "cuProfilerStop", version: 4000, call: nothing},
}

func nothing(*caller, *args) error { return nil }

func initialize(_ *caller, a *args) error {
	if a.u32(0) != 0 {
		return refuse(invalidValue, "the flags of cuInit are 0, not %#x", a.u32(0))
	}
	if _, err := inUse(); err != nil {
		return err
	}
	initialized.Store(true)
	return nil
}

// errorText returns the function for one of the texts of errors.
func errorText(which int) func(c *caller, a *args) error {
	return func(_ *caller, a *args) error {
		if err := a.need(1); err != nil {
			return err
		}
		text, known := errorTexts[a.int(0)]
		if !known {
			put(a, 1, unsafe.Pointer(nil))
			return refuse(invalidValue, "there is no error %d", a.int(0))
		}
		put(a, 1, cString(text[which]))
		return nil
	}
}

// The states that cuGetProcAddress reports.
const (
	symbolFound = iota
	symbolUnknown
	symbolTooNew
)

// perThreadDefault is the flag of cuGetProcAddress for functions whose stream 0 is the thread's default stream.
const perThreadDefault = 2

// procAddress finds a function by its name and the version of CUDA that a program was written for.
func procAddress(a *args, state *int32) error {
	if err := a.need(0, 1); err != nil {
		return err
	}
	name, version, flags := a.text(0), a.int(2), a[3]
	var best *exported
	*state = symbolUnknown
	name = strings.TrimSuffix(strings.TrimSuffix(name, ptsz), ptds)
	for _, f := range exports.byName[name] {
		if f.perThread && flags != perThreadDefault {
			continue
		}
		if f.versionFor(name) > version {
			if *state == symbolUnknown {
				*state = symbolTooNew
			}
			continue
		}
		*state = symbolFound
		if best == nil || f.version > best.version || f.version == best.version && f.perThread {
			best = f
		}
	}
	address := uintptr(0)
	if best != nil {
		address = best.address
		*state = symbolFound
	}
	put(a, 1, address)
	return nil
}
