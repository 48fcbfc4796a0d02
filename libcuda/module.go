package libcuda

import (
	"os"
	"sync"

	"halstream/hal"
	"halstream/ptx"
)

// module is a program that is loaded in a context.
type module struct {
	*hal.Module
	x      *context
	handle uintptr
	text   string
	// library is whose program it is, nil for one that the program loaded itself.
	library *library

	mu      sync.Mutex
	kernels map[string]*kernel
}

func (m *module) owner() *context     { return m.x }
func (m *module) end(c *caller) error { return m.unload(c) }

func (m *module) unload(c *caller) error {
	m.library.drop(m)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.kernels {
		removeHandle(k.handle)
	}
	m.kernels = nil
	removeHandle(m.handle)
	return m.Close(c.t)
}

// kernel returns a function of the module by its name.
func (m *module) kernel(name string) (*kernel, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kernels[name]; k != nil {
		return k, nil
	}
	f, err := m.Function(name)
	if err != nil {
		return nil, err
	}
	k := &kernel{name: name, module: m, f: f, settings: m.library.settingsOf(name)}
	k.handle = newHandle(k)
	if m.kernels == nil {
		m.kernels = map[string]*kernel{}
	}
	m.kernels[name] = k
	return k, nil
}

func moduleOf(handle uintptr) (*module, error) {
	return find[*module](handle, invalidHandle, "module")
}

// onModule returns a function for a module that is its argument i.
func onModule(i int, f func(c *caller, m *module, a *args) error) func(c *caller, a *args) error {
	return func(c *caller, a *args) error {
		m, err := moduleOf(a.handle(i))
		if err != nil {
			return err
		}
		return f(c, m, a)
	}
}

// library is a program that is loaded on each device that uses it.
type library struct {
	handle uintptr
	text   string

	mu       sync.Mutex
	unloaded bool
	modules  map[*context]*module
	kernels  map[string]*kernel

	settingsMu sync.Mutex // the locks of the library and of its modules come before it
	settings   map[string]*settings
}

func libraryOf(handle uintptr) (*library, error) {
	return find[*library](handle, invalidHandle, "library")
}

// onLibrary returns a function for a library that is its argument i.
func onLibrary(i int, f func(c *caller, l *library, a *args) error) func(c *caller, a *args) error {
	return func(c *caller, a *args) error {
		l, err := libraryOf(a.handle(i))
		if err != nil {
			return err
		}
		return f(c, l, a)
	}
}

// in returns the library's module in a context.
func (l *library) in(c *caller, x *context) (*module, error) {
	if m := l.moduleIn(x); m != nil {
		return m, nil
	}
	loaded, err := c.load(x.dev, l.text) // which takes its time: without the lock
	if err != nil {
		return nil, err
	}
	m, kept := l.keep(loaded, x)
	if !kept {
		if err := loaded.Close(c.t); err != nil {
			return nil, err
		}
	}
	if m == nil {
		return nil, refuse(invalidHandle, "the library was unloaded")
	}
	return m, nil
}

func (l *library) moduleIn(x *context) *module {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.modules[x]
}

// keep makes what was loaded the library's module in a context, unless another thread was first, whose module it returns,
// or the library was unloaded.
func (l *library) keep(loaded *hal.Module, x *context) (m *module, kept bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m = l.modules[x]; m != nil || l.unloaded {
		return m, false
	}
	m = &module{Module: loaded, x: x, text: l.text, library: l}
	m.handle = newHandle(m)
	if l.modules == nil {
		l.modules = map[*context]*module{}
	}
	l.modules[x] = m
	return m, true
}

// drop forgets a module that is unloaded, which ends with its context at the latest. The library can be nil.
func (l *library) drop(m *module) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.modules[m.x] == m {
		delete(l.modules, m.x)
	}
}

// unload ends the library with its modules. The error is the first.
func (l *library) unload(c *caller) (first error) {
	l.mu.Lock()
	modules, kernels := l.modules, l.kernels
	l.modules, l.kernels, l.unloaded = nil, nil, true
	l.mu.Unlock()
	for _, m := range modules {
		if err := m.unload(c); first == nil {
			first = err
		}
	}
	for _, k := range kernels {
		removeHandle(k.handle)
	}
	removeHandle(l.handle)
	return first
}

// settingsOf returns what the program has set for a kernel of a library on all devices, or for that of a module without one.
func (l *library) settingsOf(name string) *settings {
	if l == nil {
		return &settings{}
	}
	l.settingsMu.Lock()
	defer l.settingsMu.Unlock()
	known := l.settings[name]
	if known == nil {
		if l.settings == nil {
			l.settings = map[string]*settings{}
		}
		known = &settings{}
		l.settings[name] = known
	}
	return known
}

// kernelNames returns the kernels of a program.
func kernelNames(text string) ([]string, error) {
	m, err := ptx.Parse(text)
	if err != nil {
		return nil, refuse(invalidPTX, "%v", err)
	}
	return m.Kernels(), nil
}

func (c *caller) loadModule(a *args, text string, err error, options jitOptions) error {
	if err == nil {
		err = a.need(0)
	}
	if err != nil {
		return options.finishCompile(err)
	}
	x, err := c.context()
	if err != nil {
		return err
	}
	loaded, err := c.load(x.dev, text)
	if options.finishCompile(err) != nil {
		return err
	}
	m := &module{Module: loaded, x: x, text: text}
	m.handle = newHandle(m)
	put(a, 0, m.handle)
	return nil
}

// programOfFile returns the PTX of a file.
func programOfFile(path string) (string, error) {
	image, err := os.ReadFile(path)
	if err != nil {
		return "", refuse(fileNotFound, "%v", err)
	}
	return programOf(image)
}

var moduleFunctions = []function{
	{name: "cuModuleLoad", version: 2000, call: func(c *caller, a *args) error {
		if err := a.need(1); err != nil {
			return err
		}
		text, err := programOfFile(a.text(1))
		return c.loadModule(a, text, err, jitOptions{})
	}},
	{name: "cuModuleLoadData", version: 2000, call: func(c *caller, a *args) error {
		text, err := programAt(a.pointer(1))
		return c.loadModule(a, text, err, jitOptions{})
	}},
	{name: "cuModuleLoadDataEx", version: 2010, call: func(c *caller, a *args) error {
		text, err := programAt(a.pointer(1))
		return c.loadModule(a, text, err, optionsOf(a, 2, 3, 4))
	}},
	{name: "cuModuleLoadFatBinary", version: 2000, call: func(c *caller, a *args) error {
		text, err := programAt(a.pointer(1))
		return c.loadModule(a, text, err, jitOptions{})
	}},
	{name: "cuModuleUnload", version: 2000, call: onModule(0, func(c *caller, m *module, _ *args) error { return m.unload(c) })},
	{name: "cuModuleGetFunction", version: 2000, call: onModule(1, func(_ *caller, m *module, a *args) error {
		if err := a.need(0, 2); err != nil {
			return err
		}
		k, err := m.kernel(a.text(2))
		if err == nil {
			put(a, 0, k.handle)
		}
		return err
	})},
	{name: "cuModuleGetFunctionCount", version: 12040, call: onModule(1, func(_ *caller, m *module, a *args) error {
		names, err := kernelNames(m.text)
		put(a, 0, uint32(len(names)))
		if err == nil {
			err = a.need(0)
		}
		return err
	})},
	{name: "cuModuleEnumerateFunctions", version: 12040, call: onModule(2, func(_ *caller, m *module, a *args) error {
		return storeKernels(a, m.text, m.kernel)
	})},
	{name: "cuModuleGetGlobal_v2", version: 3020, call: onModule(2, func(c *caller, m *module, a *args) error {
		return m.global(c, a, 3)
	})},
	{name: "cuModuleGetLoadingMode", version: 11070, call: func(_ *caller, a *args) error {
		put(a, 0, int32(1)) // a program is compiled when it is loaded
		return a.need(0)
	}},
	{name: "cuLibraryLoadData", version: 12000, call: func(_ *caller, a *args) error {
		text, err := programAt(a.pointer(1))
		return loadLibrary(a, text, err)
	}},
	{name: "cuLibraryLoadFromFile", version: 12000, call: func(_ *caller, a *args) error {
		if err := a.need(1); err != nil {
			return err
		}
		text, err := programOfFile(a.text(1))
		return loadLibrary(a, text, err)
	}},
	{name: "cuLibraryUnload", version: 12000, call: onLibrary(0, func(c *caller, l *library, _ *args) error {
		return l.unload(c)
	})},
	{name: "cuLibraryGetKernel", version: 12000, call: onLibrary(1, func(_ *caller, l *library, a *args) error {
		if err := a.need(0, 2); err != nil {
			return err
		}
		k, err := l.kernel(a.text(2))
		if err == nil {
			put(a, 0, k.handle)
		}
		return err
	})},
	{name: "cuLibraryGetKernelCount", version: 12040, call: onLibrary(1, func(_ *caller, l *library, a *args) error {
		names, err := kernelNames(l.text)
		put(a, 0, uint32(len(names)))
		return err
	})},
	{name: "cuLibraryEnumerateKernels", version: 12040, call: onLibrary(2, func(_ *caller, l *library, a *args) error {
		return storeKernels(a, l.text, l.kernel)
	})},
	{name: "cuLibraryGetModule", version: 12000, call: onLibrary(1, func(c *caller, l *library, a *args) error {
		x, err := c.context()
		if err != nil {
			return err
		}
		m, err := l.in(c, x)
		if err == nil {
			put(a, 0, m.handle)
		}
		return err
	})},
	{name: "cuLibraryGetGlobal", version: 12000, call: onLibrary(2, func(c *caller, l *library, a *args) error {
		x, err := c.context()
		if err != nil {
			return err
		}
		m, err := l.in(c, x)
		if err != nil {
			return err
		}
		return m.global(c, a, 3)
	})},
	{name: "cuLibraryGetManaged", version: 12000, call: func(c *caller, a *args) error {
		return refuse(notFound, "a program of PTX has no managed variables here")
	}},
	{name: "cuLibraryGetUnifiedFunction", version: 12000, call: func(c *caller, a *args) error {
		return refuse(notFound, "functions have no address that all devices share")
	}},
}

// storeKernels stores the handles of the kernels of a program in an array, as many as there is room for.
func storeKernels(a *args, text string, kernel func(name string) (*kernel, error)) error {
	names, err := kernelNames(text)
	if err == nil {
		err = a.need(0)
	}
	if err != nil {
		return err
	}
	into := list[uintptr](a, 0, uint64(a.u32(1)))
	for i := range min(len(into), len(names)) {
		k, err := kernel(names[i])
		if err != nil {
			return err
		}
		into[i] = k.handle
	}
	return nil
}

// global gives the memory of a variable, whose name is an argument.
func (m *module) global(c *caller, a *args, name int) error {
	if err := a.need(name); err != nil {
		return err
	}
	r, err := m.Global(c.t, a.text(name))
	if err == nil {
		put(a, 0, r.Start)
		put(a, 1, r.Size)
	}
	return err
}

// kernel returns a kernel of the library by its name.
func (l *library) kernel(name string) (*kernel, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.kernels[name]; k != nil {
		return k, nil
	}
	names, err := kernelNames(l.text)
	if err != nil {
		return nil, err
	}
	for _, one := range names {
		if one == name {
			k := &kernel{name: name, library: l, settings: l.settingsOf(name)}
			k.handle = newHandle(k)
			if l.kernels == nil {
				l.kernels = map[string]*kernel{}
			}
			l.kernels[name] = k
			return k, nil
		}
	}
	return nil, refuse(notFound, "the library has no kernel %s", name)
}

func loadLibrary(a *args, text string, err error) error {
	options := optionsOf(a, 4, 2, 3)
	if err == nil {
		_, err = kernelNames(text)
	}
	if options.finishCompile(err) != nil {
		return err
	}
	if err := a.need(0); err != nil {
		return err
	}
	l := &library{text: text}
	l.handle = newHandle(l)
	put(a, 0, l.handle)
	return nil
}
