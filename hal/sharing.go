package hal

import (
	"bytes"
	"encoding/binary"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"halstream/hal/driver"
)

// ShareHandle names memory of a device, or an event, to other processes of the machine. Only OpenMemory and OpenEvent
// understand it, and only as long as the process that made it runs.
type ShareHandle [64]byte

// The first bytes of each handle; the last one is the number of its layout.
var (
	memoryMark = [8]byte{'h', 'a', 'l', 'm', 'e', 'm', 0, 1}
	eventMark  = [8]byte{'h', 'a', 'l', 'e', 'v', 't', 0, 1}
)

// handleFields is the layout of a handle: at most 48 bytes, which is what vendors' functions that take it by value hand on
// (see libcuda/share.go).
type handleFields struct {
	Mark                  [8]byte
	Process, File         int32
	Started, Offset, Size uint64
	Device                int32
}

func newHandle(mark [8]byte, m driver.SharedMemory, d *Device) (h ShareHandle) {
	var written bytes.Buffer
	fields := handleFields{mark, int32(m.Process), int32(m.File), m.Started, m.Offset, m.Size, int32(d.ordinal)}
	_ = binary.Write(&written, binary.LittleEndian, &fields)
	copy(h[:], written.Bytes())
	return h
}

// sharedBy returns the device that a handle of another process names here, and where its memory is.
func sharedBy(rt *Runtime, op string, h ShareHandle, mark [8]byte, what string) (*Device, driver.SharingDevice, driver.SharedMemory, error) {
	var f handleFields
	_ = binary.Read(bytes.NewReader(h[:]), binary.LittleEndian, &f)
	var err error
	switch {
	case f.Mark != mark:
		err = driver.Errorf(driver.InvalidValue, op, "this is no handle of %s of this version of halstream", what)
	case int(f.Process) == os.Getpid():
		err = driver.Errorf(driver.WrongContext, op, "this process has made the handle: use the %s that it has", what)
	case f.Device < 0 || int(f.Device) >= len(rt.devices):
		err = driver.Errorf(driver.WrongDevice, op, "it belongs to device %d; here the last device is %d", f.Device, len(rt.devices)-1)
	}
	if err != nil {
		return nil, nil, driver.SharedMemory{}, err
	}
	d := rt.devices[f.Device]
	device, err := sharingOf(d, op)
	return d, device, driver.SharedMemory{Process: int(f.Process), Started: f.Started, File: int(f.File), Offset: f.Offset, Size: f.Size}, err
}

// sharingOf returns the backend's device as one that shares with other processes.
func sharingOf(d *Device, op string) (driver.SharingDevice, error) {
	if device, ok := d.d.(driver.SharingDevice); ok {
		return device, nil
	}
	return nil, driver.Errorf(driver.NotSupported, op, "not built yet for the %s backend", d.rt.Name())
}

// opened is memory of another process: how often the program has opened it. The memory's lock guards the field.
type opened struct {
	handle ShareHandle
	times  int
}

func (*opened) kind(*Block) string { return "memory of another process" }

func (o *opened) giveBack(b *Block) { b.dev.d.(driver.SharingDevice).Unmap(b.Start, b.Size) }

// Records of an event that several processes have, in a page that all of them map. Each record takes the next number. It
// is done when its place in the list has that number or a later one.
type recordPage struct {
	// latest is the number of the latest record, and above it the number of the process that made it.
	latest atomic.Uint64
	done   [recordPlaces]atomic.Uint64
}

const (
	recordPlaces   = 511 // as many records can be pending at once
	recordPageSize = uint64(unsafe.Sizeof(recordPage{}))
	numberBits     = 40
	numberMask     = 1<<numberBits - 1
)

func processBits() uint64 { return uint64(os.Getpid()) << numberBits }

// place returns where a record says that it is done.
func (p *recordPage) place(number uint64) *atomic.Uint64 { return &p.done[number%recordPlaces] }

func (p *recordPage) isDone(number uint64) bool { return p.place(number).Load() >= number }

// sharedRecords is what an event has that several processes use.
type sharedRecords struct {
	dev    *Device
	page   *recordPage
	block  *Block // the page, as pinned memory that streams may wait for
	memory driver.SharedMemory
	own    bool // this process has made the page
	handle ShareHandle

	mu      sync.Mutex
	closed  bool
	waiting *Stream // on which the host waits for records of other processes; nil until it does
	pending atomic.Int64
}

// sharedRecord is a record of this process that will be done.
type sharedRecord struct {
	of     *sharedRecords
	number uint64
}

// Reached implements driver.Notice.
func (r sharedRecord) Reached() {
	for place := r.of.page.place(r.number); ; {
		before := place.Load()
		if before >= r.number || place.CompareAndSwap(before, r.number) {
			r.of.pending.Add(-1)
			return
		}
	}
}

// begin takes the number of a record that this process is about to make.
func (r *sharedRecords) begin() (sharedRecord, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return sharedRecord{}, closedError("record", "event")
	}
	for {
		before := r.page.latest.Load()
		number := before&numberMask + 1
		if number > recordPlaces && !r.page.isDone(number-recordPlaces) {
			return sharedRecord{}, driver.Errorf(driver.InvalidValue, "record",
				"%d records of an event that other processes have are pending; wait for some of them", recordPlaces)
		}
		if r.page.latest.CompareAndSwap(before, processBits()|number) {
			r.pending.Add(1)
			return sharedRecord{r, number}, nil
		}
	}
}

// made says that the record was made, which e stands for now; err is why it was not.
func (r sharedRecord) made(e *Event, err error) {
	if err == nil {
		if p, ok := e.bound.Load().d.Point().(driver.Notifying); ok {
			p.Notify(r)
			return
		}
	}
	r.Reached()
}

// elsewhere returns the number of the latest record if another process has made it, else 0.
func (r *sharedRecords) elsewhere() uint64 {
	latest := r.page.latest.Load()
	if latest&^numberMask == processBits() {
		return 0
	}
	return latest & numberMask
}

// wait makes later work of s start after a record of another process.
func (r *sharedRecords) wait(t *Thread, s *Stream, number uint64, limit int64) error {
	const op = "wait event"
	switch c := s.capture.Load(); {
	case s.dev.rt != r.dev.rt:
		return otherRuntimeError(op, "the event of another process")
	case c != nil:
		return c.refuse(s, op, "a wait for a record of another process is not built yet for graphs")
	case limit != driver.Forever:
		return driver.Errorf(driver.NotSupported, op, "a wait for a record of another process has no limit yet")
	}
	place := uint64(uintptr(unsafe.Pointer(r.page.place(number))))
	return s.value(t, OpWaitValue, ValueAccess{place, number, driver.AtLeast}, func(v driver.Value) error {
		v.Gone = r.gone(int(r.page.latest.Load() >> numberBits))
		return s.d.WaitValue(v)
	})
}

// gone returns what tells that a process has ended which has recorded the event; nil where nothing does.
func (r *sharedRecords) gone(process int) func() *Error {
	if process == 0 {
		return nil
	}
	started := uint64(0)
	if process == r.memory.Process {
		started = r.memory.Started
	}
	device := r.dev.d.(driver.SharingDevice)
	return func() *Error {
		if device.Runs(process, started) {
			return nil
		}
		return driver.Errorf(driver.Aborted, "wait event", "process %d, which had recorded the event, has ended before the work was done", process)
	}
}

// point returns the point at which a record of another process is done.
func (r *sharedRecords) point(t *Thread, number uint64) (driver.Point, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		s, err := r.dev.newStream(StreamOptions{NonBlocking: true}, nil)
		if err != nil {
			return nil, err
		}
		r.waiting = s
	}
	if err := r.wait(t, r.waiting, number, driver.Forever); err != nil {
		return nil, err
	}
	return r.waiting.d.Point(), nil
}

// close ends the use of the event in this process. Records that are pending still write into the page, which stays then.
func (r *sharedRecords) close(t *Thread) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	device := r.dev.d.(driver.SharingDevice)
	if r.own {
		device.Withdraw(r.memory)
	}
	if r.waiting != nil {
		_ = r.waiting.Close(t)
	}
	if r.pending.Load() == 0 {
		_ = r.block.Release(t)
	}
}

// recordsPage is whose the memory of the page is.
type recordsPage struct{ device driver.SharingDevice }

func (recordsPage) kind(*Block) string { return "memory of an event of several processes" }

func (p recordsPage) giveBack(b *Block) { p.device.Unmap(b.Start, b.Size) }

// newSharedRecords makes what an event of several processes has out of a page that is mapped.
func newSharedRecords(d *Device, device driver.SharingDevice, addr uint64, m driver.SharedMemory, own bool) *sharedRecords {
	b := &Block{Start: addr, Size: m.Size, Kind: Pinned, owner: recordsPage{device}}
	d.rt.addBlock(b)
	return &sharedRecords{
		dev: d, page: *(**recordPage)(unsafe.Pointer(&addr)), block: b, memory: m, own: own, handle: newHandle(eventMark, m, d),
	}
}
