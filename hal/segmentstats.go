package hal

import "halstream/hal/bestfit"

// Gauge is a count with its peak, and with all that was added to it.
type Gauge struct{ Current, Peak, Added uint64 }

func (g *Gauge) add(n uint64) {
	g.Current += n
	g.Added += n
	g.Peak = max(g.Peak, g.Current)
}

// SegmentStats counts what the stream-ordered pool of a device has taken from it. Peaks
// are those since the latest Device.ResetMemoryPeaks.
type SegmentStats struct {
	Segments, Bytes Gauge
	// Split counts the free parts of segments that are in use in part, and which
	// therefore cannot go back to the device.
	Split, SplitBytes Gauge
}

// Indices of MemoryStats.Pools.
const (
	AllSegments   = iota
	SmallSegments // of up to 2 MiB
	LargeSegments
	segmentKinds
)

// segmentCounts counts all segments of a pool, and the small and the large ones.
type segmentCounts [segmentKinds]SegmentStats

// kindsOf returns the two kinds that a segment of so many bytes counts for.
func kindsOf(size uint64) [2]int {
	if size <= smallSegment {
		return [2]int{AllSegments, SmallSegments}
	}
	return [2]int{AllSegments, LargeSegments}
}

func (s *segmentCounts) added(size uint64) {
	for _, kind := range kindsOf(size) {
		s[kind].Segments.add(1)
		s[kind].Bytes.add(size)
	}
}

func (s *segmentCounts) removed(size uint64) {
	for _, kind := range kindsOf(size) {
		s[kind].Segments.Current--
		s[kind].Bytes.Current -= size
	}
}

func (s *segmentCounts) resetPeaks(split, segments bool) {
	for i := range s {
		of := &s[i]
		if split {
			of.Split.Peak, of.SplitBytes.Peak = of.Split.Current, of.SplitBytes.Current
		}
		if segments {
			of.Segments.Peak, of.Bytes.Peak = of.Segments.Current, of.Bytes.Current
		}
	}
}

// addFree puts a free chunk into a bin, merged with its neighbours there, and returns
// the chunk that it is now part of. The caller holds mu.
func (p *pool) addFree(b *bestfit.Bin, c *bestfit.Chunk) *bestfit.Chunk {
	parts, bytes := b.Len(), c.Size
	c = b.Add(c)
	merged := uint64(parts + 1 - b.Len())
	for _, kind := range kindsOf(c.Segment().Size) {
		of := &p.counts[kind]
		of.Split.Current -= merged
		if c.Whole() {
			of.SplitBytes.Current -= c.Size - bytes
		} else {
			of.Split.add(1)
			of.SplitBytes.add(bytes)
		}
	}
	return c
}

// removeFree takes a free chunk out of its bin. The caller holds mu.
func (p *pool) removeFree(c *bestfit.Chunk) {
	c.Bin().Remove(c)
	if c.Whole() {
		return
	}
	for _, kind := range kindsOf(c.Segment().Size) {
		p.counts[kind].Split.Current--
		p.counts[kind].SplitBytes.Current -= c.Size
	}
}
