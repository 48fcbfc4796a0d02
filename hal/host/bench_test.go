package host_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// benchStreams returns two streams of a device and an event.
func benchStreams(b testing.TB) (s, o *hal.Stream, e *hal.Event) {
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(b, err)
	b.Cleanup(rt.Close)
	d, err := rt.Device(0)
	require.NoError(b, err)
	s, err = d.NewStream(nil, hal.StreamOptions{NonBlocking: true})
	require.NoError(b, err)
	o, err = d.NewStream(nil, hal.StreamOptions{NonBlocking: true})
	require.NoError(b, err)
	e, err = rt.NewEvent(nil, nil, hal.EventOptions{})
	require.NoError(b, err)
	return s, o, e
}

// benchDrain is after how many operations a benchmark waits for a stream, so that
// no backlog grows.
const benchDrain = 512

func BenchmarkRecord(b *testing.B) {
	s, _, e := benchStreams(b)
	for b.Loop() {
		_ = s.Record(nil, e)
	}
}

func BenchmarkNop(b *testing.B) {
	s, _, _ := benchStreams(b)
	for i := 0; b.Loop(); i++ {
		_ = s.Nop(nil)
		if i%benchDrain == 0 {
			_, _ = s.Synchronize(nil, driver.Forever)
		}
	}
}

func BenchmarkNopSynchronize(b *testing.B) {
	s, _, _ := benchStreams(b)
	for b.Loop() {
		_ = s.Nop(nil)
		_, _ = s.Synchronize(nil, driver.Forever)
	}
}

// BenchmarkHops makes each operation of one stream wait for the last one of the other.
func BenchmarkHops(b *testing.B) {
	s, o, e := benchStreams(b)
	for i := 0; b.Loop(); i++ {
		_ = s.Nop(nil)
		_ = s.Record(nil, e)
		_ = o.Wait(nil, e)
		s, o = o, s
		if i%benchDrain == 0 {
			_, _ = s.Synchronize(nil, driver.Forever)
		}
	}
}

// BenchmarkHopsBehindAGate runs chains of 1,000 hops that were enqueued before. ns/run
// is the time of one chain without its enqueue.
func BenchmarkHopsBehindAGate(b *testing.B) {
	s, o, e := benchStreams(b)
	var ran time.Duration
	for b.Loop() {
		g, err := s.Gate(nil)
		require.NoError(b, err)
		for range 1000 {
			_, _ = s.Record(nil, e), o.Wait(nil, e)
			s, o = o, s
		}
		began := time.Now()
		g.Open()
		_, _ = s.Synchronize(nil, driver.Forever)
		ran += time.Since(began)
	}
	b.ReportMetric(float64(ran.Nanoseconds())/float64(b.N), "ns/run")
}

// BenchmarkNopLogged enqueues with a log that keeps every operation.
func BenchmarkNopLogged(b *testing.B) {
	s, _, _ := benchStreams(b)
	log := s.Device().Runtime().Log(false)
	b.Cleanup(log.Stop)
	for i := 0; b.Loop(); i++ {
		_ = s.Nop(nil)
		if i%benchDrain == 0 {
			_, _ = s.Synchronize(nil, driver.Forever)
			log.Take()
		}
	}
}

// BenchmarkCopy copies between two blocks of a device and waits; memmove is what Go's copy takes for the same.
func BenchmarkCopy(b *testing.B) {
	for _, size := range []int64{4 << 20, 64 << 20} {
		s, _, _ := benchStreams(b)
		source, err := s.Device().Alloc(nil, size)
		require.NoError(b, err)
		target, err := s.Device().Alloc(nil, size)
		require.NoError(b, err)
		spec := hal.CopySpec{Dst: target.Start, Src: source.Start, Width: uint64(size)}
		b.Run(fmt.Sprintf("%dMiB", size>>20), func(b *testing.B) {
			for b.Loop() {
				_, _ = s.Copy(nil, spec)
				_, _ = s.Synchronize(nil, driver.Forever)
			}
		})
		b.Run(fmt.Sprintf("memmove%dMiB", size>>20), func(b *testing.B) {
			to, from := bytesAt(target.Start, int(size)), bytesAt(source.Start, int(size))
			for b.Loop() {
				copy(to, from)
			}
		})
	}
}
