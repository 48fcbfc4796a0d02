package order

import "halstream/hal"

// waitNote is a wait of a stream for another one, up to an operation there.
type waitNote struct {
	own      uint32 // the operation that it was
	timeline *timeline
	upTo     uint32
	note     Note
	vain     Why // why the wait orders nothing; "" for one that does
}

// recordNote is a record on a stream.
type recordNote struct {
	own  uint32
	note Note
}

func (l *timeline) note(op *hal.Operation) Note {
	n := Note{ID: op.ID, Site: op.Site, Device: l.dev.ordinal, Stream: l.stream.Index()}
	if op.Event != nil {
		n.Event, n.Version = op.Event.ID(), op.Version
	}
	return n
}

// noteWait remembers the wait op; it is called before l's stamp is advanced for it.
func (l *timeline) noteWait(op *hal.Operation, from *timeline, upTo uint32) {
	l.waits[l.nwaits%uint(len(l.waits))] = waitNote{own: l.seq + 1, timeline: from, upTo: upTo, note: from.note(op)}
	l.nwaits++
}

// noteVainWait remembers the wait op, which orders nothing. One without a record is not
// enqueued.
func (l *timeline) noteVainWait(op *hal.Operation, why Why) {
	own := l.seq
	if why == OwnRecord {
		own++
	}
	l.waits[l.nwaits%uint(len(l.waits))] = waitNote{own: own, timeline: l, note: l.note(op), vain: why}
	l.nwaits++
}

func (l *timeline) noteRecord(op *hal.Operation) {
	l.records[l.nrecord%uint(len(l.records))] = recordNote{l.seq, l.note(op)}
	l.nrecord++
}

// lastWait returns the latest wait of o's stream before o for the stream of a,
// or else for any other, or else one that orders nothing.
func lastWait(a, o *info) (found *waitNote, same bool) {
	l := o.timeline
	for i := range min(l.nwaits, uint(len(l.waits))) {
		w := &l.waits[(l.nwaits-1-i)%uint(len(l.waits))]
		if w.own >= o.seq {
			continue
		}
		if w.timeline == a.timeline && w.vain == "" {
			return w, true
		}
		if found == nil || found.vain != "" && w.vain == "" {
			found = w
		}
	}
	return found, false
}

// firstRecord returns the first record behind a on its stream that is still
// remembered.
func firstRecord(a *info) *Note {
	l := a.timeline
	for i := min(l.nrecord, uint(len(l.records))); i > 0; i-- {
		if r := &l.records[(l.nrecord-i)%uint(len(l.records))]; r.own > a.seq {
			note := r.note
			return &note
		}
	}
	return nil
}

// reason explains why o, which was called later, does not come after a. reused says that
// the memory is another block's since a.
func reason(a, o *info, reused bool) Reason {
	var r Reason
	switch {
	case reused:
		r.Memory = GivenOut
	case o.kind == free:
		r.Memory = Freed
	case a.kind == free:
		r.Memory = Reused
	case a.kind == allocate:
		r.Memory = Unallocated
	}
	if a.run != nil && a.run == o.run {
		r.Why = NoPath
		r.Devices = a.run.list.Node(a.node).Device() != o.run.list.Node(o.node).Device()
		return r
	}
	if a.timeline == nil {
		r.Why = HostThreads
		return r
	}
	r.Record = firstRecord(a)
	if o.timeline == nil {
		r.Why = NotSynchronized
		if o.clocks[strict].upTo(a.slot) > 0 {
			r.Why = SynchronizedEarlier
		}
		return r
	}
	r.Devices = a.timeline.dev != o.timeline.dev
	w, same := lastWait(a, o)
	switch {
	case same && w.note.Event != 0:
		r.Why = OlderRecord
	case same:
		r.Why = EarlierWork
	case !r.Devices && (a.timeline.legacy && !o.timeline.ordered || o.timeline.legacy && !a.timeline.ordered):
		r.Why = NonBlocking
	case w != nil && w.vain != "":
		r.Why = w.vain
	case w != nil:
		r.Why = OtherStream
	default:
		r.Why = NeverWaited
	}
	if w != nil {
		note := w.note
		r.Wait = &note
	}
	return r
}
