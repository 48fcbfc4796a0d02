package order

import (
	"fmt"
	"testing"

	"halstream/hal"
)

// BenchmarkOperations is what the checker takes for one operation; each round
// is a whole program, since what it keeps grows with the program.
func BenchmarkOperations(b *testing.B) {
	for _, n := range []int{2, 8, 1000} {
		b.Run(fmt.Sprintf("pipeline over %d streams", n), func(b *testing.B) {
			run(b, pipeline(b, n, 100_000))
		})
	}
	for _, n := range []int{8, 1000} {
		b.Run(fmt.Sprintf("waits among %d streams", n), func(b *testing.B) {
			run(b, crossing(b, n, 100_000))
		})
	}
	b.Run("recorded pipeline over 8 streams", func(b *testing.B) { runWith(b, pipeline(b, 8, 100_000), (*Checker).Record) })
	b.Run("one input for 1000 streams", func(b *testing.B) { run(b, shared(b, 1000, 100_000)) })
	b.Run("legacy copies between streams", func(b *testing.B) { run(b, legacyCopies(b, 4, 100_000)) })
	b.Run("short streams", func(b *testing.B) { run(b, short(b, 100_000)) })
	b.Run("two host threads", func(b *testing.B) { run(b, threads(b, 100_000)) })
	b.Run("races", func(b *testing.B) { run(b, races(b, 8, 100_000)) })
}

func run(b *testing.B, ops []hal.Operation) { runWith(b, ops, func(*Checker) {}) }

func runWith(b *testing.B, ops []hal.Operation, prepare func(*Checker)) {
	b.ReportAllocs()
	b.ResetTimer()
	var got Stats
	for range b.N {
		c := New()
		prepare(c)
		for i := range ops {
			c.Handle(ops[i])
		}
		got = c.Stats()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ops)), "ns/operation")
	b.ReportMetric(float64(got.Slots), "slots")
	b.ReportMetric(float64(got.Reports), "reports")
}

// script collects operations.
type script struct {
	*kit
	ops []hal.Operation
}

func (s *script) add(op hal.Operation) {
	s.id++
	op.ID, op.Seq, op.Site = s.id, uint64(s.id), 1+s.id%100
	if op.Thread == nil {
		op.Thread = s.me
	}
	s.ops = append(s.ops, op)
}

func (s *script) copy(on *hal.Stream, from, to uint64) {
	const size = 4096
	s.add(hal.Operation{Kind: hal.OpCopy, Stream: on, Reads: is(from*size, from*size+size), Writes: is(to*size, to*size+size)})
}

func newScript(b *testing.B) *script { return &script{kit: newKit(b)} }

func (s *script) pool(n int) (streams []*hal.Stream, events []*hal.Event) {
	for range n {
		streams = append(streams, s.free())
		events = append(events, s.event(hal.Standard))
	}
	return streams, events
}

// pipeline: every stream copies in, works in two steps, copies out; the host
// synchronizes now and then.
func pipeline(b *testing.B, n, ops int) []hal.Operation {
	s := newScript(b)
	streams, events := s.pool(n)
	version := make([]uint64, n)
	for i := 0; len(s.ops) < ops; i++ {
		j := i % n
		at := uint64(j) * 4
		s.copy(streams[j], at, at+1)
		s.copy(streams[j], at+1, at+2)
		s.add(hal.Operation{Kind: hal.OpCall, Stream: streams[j], Reads: is((at+1)*4096, (at+2)*4096)})
		version[j]++
		s.add(hal.Operation{Kind: hal.OpRecord, Stream: streams[j], Event: events[j], Version: version[j]})
		s.copy(streams[j], at+2, at+3)
		if i%16 == 15 {
			s.add(hal.Operation{Kind: hal.OpSynchronizeEvent, Event: events[j], Version: version[j], Host: true})
		}
	}
	return s.ops
}

// crossing: each stream waits for its neighbour before it works on what that wrote.
func crossing(b *testing.B, n, ops int) []hal.Operation {
	s := newScript(b)
	streams, events := s.pool(n)
	version := make([]uint64, n)
	for i := 0; len(s.ops) < ops; i++ {
		j, next := i%n, (i+1)%n
		s.copy(streams[j], uint64(j), uint64(next))
		version[j]++
		s.add(hal.Operation{Kind: hal.OpRecord, Stream: streams[j], Event: events[j], Version: version[j]})
		s.add(hal.Operation{Kind: hal.OpWait, Stream: streams[next], Event: events[j], Version: version[j]})
	}
	return s.ops
}

// shared: all streams read the same and write their own.
func shared(b *testing.B, n, ops int) []hal.Operation {
	s := newScript(b)
	streams, _ := s.pool(n)
	for i := 0; len(s.ops) < ops; i++ {
		s.copy(streams[i%n], 0, uint64(1+i%n))
	}
	return s.ops
}

func legacyCopies(b *testing.B, n, ops int) []hal.Operation {
	s := newScript(b)
	var streams []*hal.Stream
	for range n {
		streams = append(streams, s.ordered())
	}
	for i := 0; len(s.ops) < ops; i++ {
		s.copy(streams[i%n], uint64(i%n), uint64(i%n+n))
		if i%8 == 7 {
			s.copy(s.legacy(), uint64(n), uint64(3*n))
			s.add(hal.Operation{Kind: hal.OpSynchronizeStream, Stream: s.legacy(), Host: true})
		}
	}
	return s.ops
}

// short: a stream and an event for every few operations, waited for by one that stays.
func short(b *testing.B, ops int) []hal.Operation {
	s := newScript(b)
	home := s.free()
	for i := uint64(0); len(s.ops) < ops; i++ {
		on, e := s.free(), s.event(hal.Standard)
		s.copy(on, 0, 1+i%64)
		s.add(hal.Operation{Kind: hal.OpRecord, Stream: on, Event: e, Version: 1})
		s.add(hal.Operation{Kind: hal.OpWait, Stream: home, Event: e, Version: 1})
		s.copy(home, 1+i%64, 100)
		s.add(hal.Operation{Kind: hal.OpCloseStream, Stream: on, Host: true})
		s.add(hal.Operation{Kind: hal.OpCloseEvent, Event: e, Host: true})
		if i%64 == 63 {
			s.add(hal.Operation{Kind: hal.OpSynchronizeStream, Stream: home, Host: true})
		}
	}
	return s.ops
}

func races(b *testing.B, n, ops int) []hal.Operation {
	s := newScript(b)
	streams, _ := s.pool(n)
	for i := 0; len(s.ops) < ops; i++ {
		s.copy(streams[i%n], uint64(i%3), uint64(i%5))
	}
	return s.ops
}

// threads: two host threads, each with streams of its own, touch memory and
// synchronize.
func threads(b *testing.B, ops int) []hal.Operation {
	s := newScript(b)
	streams, _ := s.pool(4)
	both := []*hal.Thread{s.me, hal.NewThread()}
	for i := 0; len(s.ops) < ops; i++ {
		t, on, at := both[i%2], streams[i%4], uint64(i%4)
		s.add(hal.Operation{Kind: hal.OpHostWrite, Thread: t, Host: true, Writes: is(at*4096, at*4096+4096)})
		s.add(hal.Operation{Kind: hal.OpCopy, Thread: t, Stream: on, Reads: is(at*4096, at*4096+4096), Writes: is((at+4)*4096, (at+5)*4096)})
		s.add(hal.Operation{Kind: hal.OpSynchronizeStream, Thread: t, Stream: on, Host: true})
	}
	return s.ops
}
