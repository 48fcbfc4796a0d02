package order

import (
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/host"
)

// kit is a runtime whose streams and events tests give names to, and a checker
// that is told operations made by hand. Every operation has a site of its own.
type kit struct {
	t  testing.TB
	rt *hal.Runtime
	c  *Checker
	me *hal.Thread
	id uint32
}

func newKit(t testing.TB) *kit {
	drv, err := host.Open(host.Options{Devices: 2})
	require.NoError(t, err)
	rt, err := hal.Open(drv, 1)
	require.NoError(t, err)
	t.Cleanup(rt.Close)
	return &kit{t: t, rt: rt, c: New(), me: hal.NewThread()}
}

func (k *kit) device(ordinal int) *hal.Device {
	d, err := k.rt.Device(ordinal)
	require.NoError(k.t, err)
	return d
}

// free is a stream without the legacy order.
func (k *kit) free() *hal.Stream { return k.stream(0, hal.StreamOptions{NonBlocking: true}) }

func (k *kit) ordered() *hal.Stream { return k.stream(0, hal.StreamOptions{}) }

func (k *kit) legacy() *hal.Stream { return k.device(0).Legacy() }

func (k *kit) stream(device int, o hal.StreamOptions) *hal.Stream {
	s, err := k.device(device).NewStream(k.me, o)
	require.NoError(k.t, err)
	return s
}

func (k *kit) event(kind hal.EventKind) *hal.Event {
	e, err := k.rt.NewEvent(k.me, nil, hal.EventOptions{Kind: kind})
	require.NoError(k.t, err)
	return e
}

// do tells the checker an operation and returns its number.
func (k *kit) do(op hal.Operation) uint32 {
	k.id++
	op.ID, op.Seq = k.id, uint64(k.id)
	if op.Site == 0 {
		op.Site = 1000 + k.id
	}
	if op.Thread == nil {
		op.Thread = k.me
	}
	k.c.Handle(op)
	return op.ID
}

// is is a range of bytes for tests, far from 0.
func is(from, to uint64) []hal.Range { return []hal.Range{{Start: 1<<20 + from, Size: to - from}} }

func (k *kit) write(s *hal.Stream, r []hal.Range) uint32 {
	return k.do(hal.Operation{Kind: hal.OpFill, Stream: s, Writes: r})
}

func (k *kit) read(s *hal.Stream, r []hal.Range) uint32 {
	return k.do(hal.Operation{Kind: hal.OpNative, Stream: s, Reads: r})
}

func (k *kit) record(s *hal.Stream, e *hal.Event, version uint64) uint32 {
	return k.do(hal.Operation{Kind: hal.OpRecord, Stream: s, Event: e, Version: version})
}

func (k *kit) wait(s *hal.Stream, e *hal.Event, version uint64) uint32 {
	return k.do(hal.Operation{Kind: hal.OpWait, Stream: s, Event: e, Version: version})
}

func (k *kit) waitStream(s, o *hal.Stream) uint32 {
	return k.do(hal.Operation{Kind: hal.OpWaitStream, Stream: s, Other: o})
}

func (k *kit) host(kind hal.OperationKind, t *hal.Thread, op hal.Operation) uint32 {
	op.Kind, op.Thread, op.Host = kind, t, true
	return k.do(op)
}

func (k *kit) sync(s *hal.Stream) uint32 {
	return k.host(hal.OpSynchronizeStream, k.me, hal.Operation{Stream: s})
}

func (k *kit) hostRead(r []hal.Range) uint32 {
	return k.host(hal.OpHostRead, k.me, hal.Operation{Reads: r})
}

func (k *kit) hostWrite(r []hal.Range) uint32 {
	return k.host(hal.OpHostWrite, k.me, hal.Operation{Writes: r})
}

// none requires that nothing was found since the last look.
func (k *kit) none() {
	k.t.Helper()
	require.Empty(k.t, k.c.Take())
	require.True(k.t, k.c.table.sorted())
}

// one requires exactly one report since the last look, of these operations.
func (k *kit) one(category Category, first, second uint32) Report {
	k.t.Helper()
	found := k.c.Take()
	require.Len(k.t, found, 1)
	require.Equal(k.t, category, found[0].Category)
	require.Equal(k.t, first, found[0].First.ID)
	require.Equal(k.t, second, found[0].Second.ID)
	require.True(k.t, k.c.table.sorted())
	return found[0]
}
