package main

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"halstream/cuda"
	"halstream/hal"
	"halstream/hal/driver"
)

// limit is how long a wait of the program may take.
const limit = int64(5 * time.Second)

// program uses every feature of the backend once or more, and goes on after
// each failure: what can go on shall.
type program struct {
	rt     *hal.Runtime
	me     *hal.Thread
	errs   []error
	stuck  []string
	mu     sync.Mutex
	tokens map[uint64]string
	last   uint64
	served sync.WaitGroup
}

// run runs the program once on the look-alike at path.
func run(path string) *program {
	p := &program{me: hal.NewThread(), tokens: map[uint64]string{}}
	drv, err := cuda.Open(path)
	if err != nil {
		p.failed(err)
		return p
	}
	if p.rt, err = hal.Open(drv, 4); err != nil {
		p.failed(err)
		return p
	}
	p.serve()
	for ordinal := range p.rt.Devices() {
		d, _ := p.rt.Device(ordinal)
		p.device(d)
	}
	if p.rt.Devices() > 1 {
		p.across()
	}
	p.me.Retire()
	for ordinal := range p.rt.Devices() {
		d, _ := p.rt.Device(ordinal)
		p.wait("device at the end", func() (bool, error) { return d.Synchronize(p.me, limit) })
	}
	p.left()
	p.rt.Close()
	p.served.Wait()
	return p
}

func (p *program) failed(err error) bool {
	if err != nil {
		p.mu.Lock()
		p.errs = append(p.errs, err)
		p.mu.Unlock()
	}
	return err != nil
}

// wait notes a wait that did not end.
func (p *program) wait(what string, f func() (bool, error)) {
	if done, err := f(); !p.failed(err) && !done {
		p.stuck = append(p.stuck, what)
	}
}

// serve runs functions of streams as a language's threads do.
func (p *program) serve() {
	p.rt.Funcs.Start()
	p.thread()
}

func (p *program) thread() {
	p.served.Add(1)
	go func() {
		defer p.served.Done()
		t := hal.NewThread()
		defer t.Retire()
		for {
			task, _ := p.rt.Funcs.Next(t, int64(time.Second))
			if task.Spawn {
				p.thread()
			}
			switch {
			case task.End:
				return
			case task.Token == 0:
				continue
			}
			p.mu.Lock()
			delete(p.tokens, task.Token)
			p.mu.Unlock()
			if !task.Drop {
				p.rt.Funcs.Done(t, false, nil)
			}
		}
	}()
}

// call enqueues a function; it must run or be dropped exactly once.
func (p *program) call(s *hal.Stream, pass bool) {
	p.mu.Lock()
	p.last++
	token := p.last
	p.tokens[token] = s.Describe()
	p.mu.Unlock()
	enqueue := s.HostFunc
	if pass {
		enqueue = s.HostFuncNoWait
	}
	if p.failed(enqueue(p.me, token)) {
		p.mu.Lock()
		delete(p.tokens, token)
		p.mu.Unlock()
	}
}

// left waits until every function has run or was dropped.
func (p *program) left() {
	for end := time.Now().Add(time.Duration(limit)); ; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		n := len(p.tokens)
		p.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			p.stuck = append(p.stuck, fmt.Sprintf("%d function(s) that neither ran nor were dropped", n))
			return
		}
	}
}

func (p *program) device(d *hal.Device) {
	for _, name := range []string{"major", "uuid", "pci", "memory", "memops", "driver", "attribute:16"} {
		_, err := d.Fact(p.me, name)
		p.failed(err)
	}
	a, err := d.NewStream(p.me, hal.StreamOptions{Priority: -1})
	if p.failed(err) {
		a = d.DefaultStream()
	}
	b, err := d.NewStream(p.me, hal.StreamOptions{NonBlocking: true})
	if p.failed(err) {
		b = d.DefaultStream()
	}
	own, err := d.PerThreadStream(p.me)
	if p.failed(err) {
		own = a
	}
	p.order(d, a, b, own)
	p.memory(d, a, b)
	p.kernels(d, a)
	if h, ok := b.Handle(); ok {
		x, err := d.External(p.me, h)
		if !p.failed(err) {
			p.wait("external stream", func() (bool, error) { return x.Synchronize(p.me, limit) })
		}
	}
	foreign(p, d)
	for _, s := range []*hal.Stream{a, b, own, d.DefaultStream()} {
		p.wait("stream", func() (bool, error) { return s.Synchronize(p.me, limit) })
	}
	for _, s := range []*hal.Stream{a, b} {
		if !s.IsDefault() {
			p.failed(s.Close(p.me))
		}
	}
}

// foreign uses a stream as another library's.
func foreign(p *program, d *hal.Device) {
	if _, err := d.External(p.me, 2); err != nil { // the thread's own, as the driver calls it
		p.failed(err)
	}
}

// order has everything that makes an order: events, waits, functions, gates.
func (p *program) order(d *hal.Device, a, b, own *hal.Stream) {
	var events []*hal.Event
	for _, o := range []hal.EventOptions{{Timing: true}, {}, {Timing: true, BlockingSync: true}, {Kind: hal.Future}, {Kind: hal.Recorded}} {
		e, err := p.rt.NewEvent(p.me, d, o)
		if !p.failed(err) {
			events = append(events, e)
		}
	}
	for _, e := range events {
		if p.failed(a.Record(p.me, e)) {
			continue // a wait for a Future event would wait for ever
		}
		p.failed(b.Wait(p.me, e))
		p.failed(a.Record(p.me, e))
		_, err := e.Query(p.me)
		p.failed(err)
		p.wait("event", func() (bool, error) { return e.Synchronize(p.me, limit) })
	}
	if len(events) > 2 {
		_, err := events[0].Elapsed(p.me, events[2])
		p.failed(err)
		_, err = events[0].Time(p.me)
		p.failed(err)
		p.failed(b.WaitLimited(p.me, events[1], int64(time.Second)))
	}
	for _, e := range events {
		if e.Options().Kind == hal.Future {
			// b must have passed its wait, or it would wait for a record to come.
			if !p.failed(a.WaitStream(p.me, b)) {
				p.failed(a.Reset(p.me, e))
			}
		}
		if e.Options().Kind != hal.Standard {
			_, err := e.WaitsPending(p.me)
			p.failed(err)
		}
	}
	p.failed(b.WaitStream(p.me, a))
	p.failed(own.WaitStream(p.me, b))
	p.failed(d.DefaultStream().Nop(p.me))
	g, err := b.Gate(p.me)
	failed := p.failed(err)
	p.call(b, false)
	p.call(b, true)
	p.call(a, false)
	if !failed {
		_, err = b.Query(p.me)
		p.failed(err)
		g.Open()
	}
	p.failed(b.Native(p.me, nothing(), 0, hal.Accesses{}))
	for _, s := range []*hal.Stream{a, b, own} {
		p.wait("stream with functions", func() (bool, error) { return s.Synchronize(p.me, limit) })
	}
	p.wait("device", func() (bool, error) { return d.Synchronize(p.me, limit) })
	for _, e := range events {
		p.failed(e.Close(p.me))
	}
}

// memory has every kind of memory, and every kind of copy between two of them.
func (p *program) memory(d *hal.Device, a, b *hal.Stream) {
	const n = 8 << 10
	block, err := d.Alloc(p.me, n)
	failed := p.failed(err)
	other, err := d.Alloc(p.me, n)
	failed = p.failed(err) || failed
	pin, err := p.rt.AllocHost(p.me, n)
	failed = p.failed(err) || failed
	pin2, err := p.rt.AllocHost(p.me, n)
	failed = p.failed(err) || failed
	_, _, err = d.MemoryInfo()
	p.failed(err)
	own := newPages(128 << 10)
	defer own.free()
	registered := newPages(4096)
	if p.failed(p.rt.RegisterHost(p.me, registered.addr, 4096)) || !p.failed(p.rt.UnregisterHost(p.me, registered.addr)) {
		registered.free()
	}
	if !failed {
		for _, c := range []hal.CopySpec{
			{Dst: block.Start, Src: pin.Start, Width: n},
			{Dst: other.Start, Src: block.Start, Width: n},
			{Dst: pin2.Start, Src: other.Start, Width: n},
			{Dst: pin2.Start, Src: pin.Start, Width: n},
			{Dst: block.Start, Src: own.addr, Width: n},
			{Dst: own.addr, Src: block.Start, Width: n},
			{Dst: block.Start, Src: other.Start, DstPitch: 128, SrcPitch: 256, Width: 64, Height: 8},
			{Dst: own.addr, Src: block.Start, DstPitch: 128, SrcPitch: 256, Width: 64, Height: 8},
		} {
			at, err := a.Copy(p.me, c)
			if !p.failed(err) && at != nil && !at.Wait(limit) {
				p.stuck = append(p.stuck, "copy")
			}
		}
		for _, size := range []uint8{1, 2, 4} {
			p.failed(b.Fill(p.me, block.Start, 7, size, 16))
		}
		p.failed(b.Fill(p.me, pin.Start, 7, 4, 16))
	}
	if x, err := a.AllocAsync(p.me, n); !p.failed(err) {
		p.failed(a.Fill(p.me, x.Start, 1, 1, n))
		p.failed(a.FreeAsync(p.me, x.Start))
	}
	p.wait("copies", func() (bool, error) { return a.Synchronize(p.me, limit) })
	p.wait("fills", func() (bool, error) { return b.Synchronize(p.me, limit) })
	if block != nil {
		p.graphs(d, a, b, block)
	}
	for _, x := range []*hal.Block{block, other} {
		if x != nil {
			p.failed(p.rt.Free(p.me, x.Start))
		}
	}
	for _, x := range []*hal.Block{pin, pin2} {
		if x != nil {
			p.failed(p.rt.FreeHost(p.me, x.Start, true))
		}
	}
	d.TrimPool(0)
}

// kernels has programs of the vendor's and their mistakes.
func (p *program) kernels(d *hal.Device, s *hal.Stream) {
	p.failed(s.Delay(p.me, 1000))
	m, err := d.LoadModule(p.me, []byte(fillPTX))
	if p.failed(err) {
		return
	}
	f, err := m.Function("fill_u32")
	if !p.failed(err) {
		if x, err := d.Alloc(p.me, 4096); !p.failed(err) {
			args := make([]byte, 3*driver.Cell)
			binary.LittleEndian.PutUint64(args, x.Start)
			binary.LittleEndian.PutUint32(args[driver.Cell:], 7)
			binary.LittleEndian.PutUint32(args[2*driver.Cell:], 16)
			spec := hal.LaunchSpec{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{16, 1, 1}, Args: args}
			p.failed(s.Launch(p.me, f, spec, nil, []hal.Range{{Start: x.Start, Size: 64}}))
			p.wait("kernel", func() (bool, error) { return s.Synchronize(p.me, limit) })
			p.failed(p.rt.Free(p.me, x.Start))
		}
	}
	p.failed(m.Close(p.me))
}

// across has what happens between two devices.
func (p *program) across() {
	d0, _ := p.rt.Device(0)
	d1, _ := p.rt.Device(1)
	can, err := d0.CanAccess(p.me, d1)
	if !p.failed(err) && can {
		p.failed(d0.EnableAccess(p.me, d1))
	}
	s, err := d0.NewStream(p.me, hal.StreamOptions{})
	if p.failed(err) {
		return
	}
	defer func() { p.failed(s.Close(p.me)) }()
	p.failed(s.WaitStream(p.me, d1.DefaultStream()))
	x, err := d0.Alloc(p.me, 4096)
	if p.failed(err) {
		return
	}
	y, err := d1.Alloc(p.me, 4096)
	if !p.failed(err) {
		_, err = s.Copy(p.me, hal.CopySpec{Dst: y.Start, Src: x.Start, Width: 4096})
		p.failed(err)
	}
	p.wait("copy across", func() (bool, error) { return s.Synchronize(p.me, limit) })
	p.failed(p.rt.Free(p.me, x.Start))
	if y != nil {
		p.failed(p.rt.Free(p.me, y.Start))
	}
}
