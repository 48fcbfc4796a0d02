package order

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"halstream/hal"
)

func TestEachPairOfSitesIsReportedOnce(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	for range 5 {
		k.do(hal.Operation{Kind: hal.OpFill, Stream: a, Site: 1, Writes: is(0, 10)})
		k.do(hal.Operation{Kind: hal.OpFill, Stream: b, Site: 2, Writes: is(0, 10)})
	}
	got := k.c.Take()
	require.Len(t, got, 1)
	require.EqualValues(t, 9, got[0].Count.Load())
	k.do(hal.Operation{Kind: hal.OpFill, Stream: a, Site: 1, Writes: is(0, 10)})
	k.none()
	require.EqualValues(t, 1, k.c.Found())
	require.Equal(t, 9, k.c.Stats().Repeats)
	require.EqualValues(t, 10, got[0].Count.Load(), "a report that was taken counts on")
	k.do(hal.Operation{Kind: hal.OpFill, Stream: a, Site: 3, Writes: is(0, 10)})
	require.Len(t, k.c.Take(), 1)
}

func TestAReportHasTheWholeRangeOfItsPair(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	k.write(b, is(20, 30))
	k.write(b, is(50, 60))
	k.waitStream(a, b)
	w := k.write(a, is(0, 100))
	k.waitStream(b, a)
	k.read(b, is(10, 20))
	k.none()
	c := k.free()
	r := k.read(c, is(5, 200))
	require.EqualValues(t, 95, k.one(Race, w, r).Range.Size)
}

func TestStreamsThatWereClosedGiveTheirSlotsBack(t *testing.T) {
	k := newKit(t)
	for i := range 3000 {
		s := k.free()
		k.write(s, is(uint64(i)*8, uint64(i)*8+8))
		k.sync(s)
		if i%2 == 0 {
			k.host(hal.OpCloseStream, k.me, hal.Operation{Stream: s})
		}
		require.NoError(t, s.Close(k.me))
		e := k.event(hal.Standard)
		k.record(k.legacy(), e, 1)
		require.NoError(t, e.Close(k.me))
	}
	k.hostWrite(is(0, 100_000))
	k.none()
	k.c.mu.Lock()
	k.c.tidy()
	k.c.mu.Unlock()
	got := k.c.Stats()
	require.Less(t, got.Slots, 2000)
	require.Less(t, got.Streams, 2000)
	require.Less(t, got.Events, 2500)
	require.Equal(t, 1, got.Pieces)
}

func TestASlotIsUsedAgainOnlyBehindItsLastOwner(t *testing.T) {
	k := newKit(t)
	a := k.free()
	w := k.write(a, is(0, 10))
	k.host(hal.OpCloseStream, k.me, hal.Operation{Stream: a})
	b := k.free()
	k.one(Race, w, k.write(b, is(0, 10)))
	k.sync(b)
	require.Equal(t, 2, k.c.Stats().Slots)
	k.host(hal.OpSynchronizeDevice, k.me, hal.Operation{Stream: k.legacy()})
	k.write(k.free(), is(0, 10))
	k.none()
	require.Equal(t, 2, k.c.Stats().Slots)
}

func TestManyStreamsThatNobodySynchronizes(t *testing.T) {
	k := newKit(t)
	for i := range maxSlots + 500 {
		s := k.free()
		k.write(s, is(uint64(i)*8, uint64(i)*8+8))
		k.host(hal.OpCloseStream, k.me, hal.Operation{Stream: s})
	}
	k.none()
	require.LessOrEqual(t, k.c.Stats().Slots, maxSlots)
}

// The new owner of a slot has its former owner's stamps. It must then know what
// that knew, or a wait for that seems to bring nothing.
func TestASlotThatIsTakenAwayKeepsWhatItKnew(t *testing.T) {
	k := newKit(t)
	w, x, e := k.free(), k.free(), k.event(hal.Standard)
	k.write(w, is(0, 10))
	k.waitStream(x, w)
	k.record(x, e, 1)
	k.host(hal.OpCloseStream, k.me, hal.Operation{Stream: x})
	z := k.free()
	k.do(hal.Operation{Kind: hal.OpNop, Stream: z})
	for range maxSlots - 4 {
		k.do(hal.Operation{Kind: hal.OpNop, Stream: k.free()})
	}
	require.Equal(t, maxSlots-1, k.c.Stats().Slots)
	y := k.free()
	k.do(hal.Operation{Kind: hal.OpNop, Stream: y})
	require.Equal(t, maxSlots-1, k.c.Stats().Slots)
	k.waitStream(z, y)
	k.wait(z, e, 1)
	k.read(z, is(0, 10))
	k.none()
}

func TestManyReadersOfOneRange(t *testing.T) {
	k := newKit(t)
	var streams []*hal.Stream
	for range 100 {
		streams = append(streams, k.free())
	}
	for range 3 {
		for _, s := range streams {
			k.read(s, is(0, 64))
		}
	}
	w := k.free()
	for _, s := range streams[1:] {
		k.waitStream(w, s)
	}
	k.write(w, is(0, 64))
	got := k.c.Take()
	require.Len(t, got, 1)
	require.Equal(t, streams[0].Index(), got[0].First.Stream)
}

// What is known to all is dropped, and equal neighbours become one.
func TestRangesDoNotStayInPieces(t *testing.T) {
	k := newKit(t)
	a, b := k.free(), k.free()
	for i := range uint64(1000) {
		k.write(a, is(i*16, i*16+16))
	}
	require.Equal(t, 1000, k.c.Stats().Pieces)
	k.sync(a)
	k.read(b, is(0, 16_000))
	require.Equal(t, 1, k.c.Stats().Pieces)
	k.read(b, is(100, 200))
	k.waitStream(a, b)
	k.write(a, is(0, 20_000))
	require.Equal(t, 1, k.c.Stats().Pieces)
	k.none()
}

// The table keeps for every byte the operations that touched it last.
func TestTableAgainstAnArray(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 300
		var tab table
		var want [size]*info
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			from := rapid.Uint64Range(0, size-1).Draw(t, "from")
			to := rapid.Uint64Range(from+1, min(size, from+40)).Draw(t, "to")
			p := piece{from, to}
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				tab.clear(p)
				clear(want[from:to])
			default:
				o := &info{stamp: stamp{1, 1}}
				set := func(c *cell, _ piece) { c.writes = append(c.writes[:0], entry{stamp: o.stamp, info: o, seen: false}) }
				if c := tab.exact(p); c != nil {
					set(c, p)
				} else {
					tab.each(p, set)
				}
				for i := from; i < to; i++ {
					want[i] = o
				}
			}
			require.True(t, tab.sorted())
			var got [size]*info
			tab.over(piece{0, size}, func(c *cell, p piece) {
				for i := p.start; i < p.end; i++ {
					got[i] = c.writes[0].info
				}
			})
			require.Equal(t, want, got)
		}
	})
}

func TestTableWithManyRanges(t *testing.T) {
	var tab table
	o := &info{stamp: stamp{1, 1}}
	for i := range uint64(5000) {
		at := i * 7919 % 5000 * 10
		tab.each(piece{at, at + 5}, func(c *cell, _ piece) { c.writes = append(c.writes, entry{stamp: stamp{1, uint32(i)}, info: &info{}}) })
	}
	require.True(t, tab.sorted())
	require.Equal(t, 5000, tab.n)
	tab.each(piece{995, 40_005}, func(c *cell, _ piece) { c.writes = append(c.writes[:0], entry{stamp: o.stamp, info: o, seen: false}) })
	require.True(t, tab.sorted())
	require.Equal(t, 100+1+999, tab.n)
	tab.clear(piece{3, 49_000})
	require.True(t, tab.sorted())
	require.Equal(t, 101, tab.n)
	require.Equal(t, 0, tab.sweep(&vector{n: []uint32{0, 1 << 31}}))
	require.True(t, tab.sorted())
}
