package pybuild

import (
	"fmt"
	"strconv"
	"strings"

	"halstream/hal/order"
)

// CheckMade returns where streams and live memory were made since the start, a
// line each: device, index and site of a stream, -1, address and site of memory.
func CheckMade() (lines string, err error) {
	defer guard(&err)
	c := checking
	if c == nil {
		return "", nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var out strings.Builder
	for k, site := range c.streams {
		fmt.Fprintf(&out, "%d %d %d\n", k.device, k.index, site)
	}
	for start, site := range c.blocks {
		fmt.Fprintf(&out, "-1 %d %d\n", start, site)
	}
	return out.String(), nil
}

// CheckStats returns numbers separated by spaces: operations, different reports,
// reports beyond the most that are kept, streams, events, ranges and threads.
func CheckStats() (numbers string, err error) {
	defer guard(&err)
	var s order.Stats
	if c := checking; c != nil {
		if c.checker != nil {
			s = c.checker.Stats()
		}
		s.Operations += c.past.Operations
		s.Reports += c.past.Reports
		s.Dropped += c.past.Dropped
	}
	var out []string
	for _, n := range []int{s.Operations, s.Reports, s.Dropped, s.Streams, s.Events, s.Pieces, s.Threads} {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, " "), nil
}

// write gives the text form: category, how many pairs, range, block, where that
// was allocated, why, what about its life, 1 across devices; for either access
// number, kind, device, stream, thread, site, token, 1 for a write, observed, by
// the host, unknown, and its bytes; and for the wait and the record number, site,
// event, version, device and stream.
func (f *finding) write(out *strings.Builder) {
	var fields []string
	text := func(s ...string) { fields = append(fields, s...) }
	number := func(list ...uint64) {
		for _, n := range list {
			text(strconv.FormatUint(n, 10))
		}
	}
	flag := func(list ...bool) {
		for _, b := range list {
			number(uint64(truth(b)))
		}
	}
	text(string(f.Category))
	number(uint64(f.Count), f.Range.Start, f.Range.Size, uint64(f.kind), f.start, f.size, uint64(f.site))
	text(string(f.Reason.Why), string(f.Reason.Memory))
	flag(f.Reason.Devices)
	access := func(a order.Access, bytes uint64) {
		number(uint64(a.ID))
		text(a.Kind, strconv.Itoa(a.Device))
		number(a.Stream, a.Thread, uint64(a.Site), a.Token)
		flag(a.Write, a.Seen, a.Host, a.Unknown)
		number(bytes)
	}
	access(f.First, f.first)
	access(f.Second, f.second)
	for _, n := range []*order.Note{f.Reason.Wait, f.Reason.Record} {
		if n == nil {
			n = &order.Note{}
		}
		number(uint64(n.ID), uint64(n.Site), n.Event, n.Version)
		text(strconv.Itoa(n.Device))
		number(n.Stream)
	}
	out.WriteString(strings.Join(fields, separator))
}
