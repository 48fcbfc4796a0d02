package pybuild

import "halstream/hal/order"

// CheckMade returns where streams and live memory were made since the start: a list
// of madeRecord.
func CheckMade() (made string, err error) {
	defer guard(&err)
	list := []madeRecord{}
	c := checking
	if c == nil {
		return encode(list), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, site := range c.streams {
		list = append(list, madeRecord{"stream", k.device, k.index, site})
	}
	for start, site := range c.blocks {
		list = append(list, madeRecord{Kind: "memory", Number: start, Site: site})
	}
	return encode(list), nil
}

// CheckStats returns what the check has seen and what it keeps: a checkRecord.
func CheckStats() (counts string, err error) {
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
	return encode(checkRecord{s.Operations, s.Reports, s.Dropped, s.Streams, s.Events, s.Pieces, s.Threads}), nil
}

func (f *finding) record() findingRecord {
	return findingRecord{
		Category: string(f.Category), Pairs: f.Count, Range: rangeRecord(f.Range),
		BlockKind: int(f.kind), Block: rangeRecord{f.start, f.size}, BlockSite: f.site,
		Why: string(f.Reason.Why), Memory: string(f.Reason.Memory), Devices: f.Reason.Devices,
		First: accessRecordOf(f.First, f.first), Second: accessRecordOf(f.Second, f.second),
		Wait: (*noteRecord)(f.Reason.Wait), Record: (*noteRecord)(f.Reason.Record),
	}
}

func accessRecordOf(a order.Access, size uint64) accessRecord {
	return accessRecord{ID: a.ID, Kind: a.Kind, Device: a.Device, Stream: a.Stream, Thread: a.Thread, Site: a.Site,
		Token: a.Token, Write: a.Write, Observed: a.Seen, Host: a.Host, Unknown: a.Unknown, Size: size}
}
