package pybuild

import "halstream/hal"

// TraceStart begins to log what is enqueued and what the host does, and
// returns the handle of the log.
func TraceStart() (handle int64, err error) { return startLog(false) }

// TraceStartTimed is TraceStart for a log with times.
func TraceStartTimed() (handle int64, err error) { return startLog(true) }

func startLog(times bool) (handle int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return insert(r.Log(times)), nil })
}

// TraceTake returns the operations that a log has gathered since the last call: a
// list of operationRecord.
func TraceTake(handle int64) (operations string, err error) {
	return on(handle, "trace", "trace", func(l *hal.Log) (string, error) {
		list := []operationRecord{}
		for when, o := range l.Take().All() {
			list = append(list, recordOf(when, &o))
		}
		return encode(list), nil
	})
}

// TraceStop ends a log and forgets it.
func TraceStop(handle int64) (zero int64, err error) {
	return on(handle, "trace", "trace", func(l *hal.Log) (int64, error) {
		l.Stop()
		remove(handle)
		return 0, nil
	})
}

func recordOf(when int64, o *hal.Operation) operationRecord {
	var thread uint64
	if o.Thread != nil {
		thread = o.Thread.ID
	}
	r := operationRecordOf(o, thread)
	r.Time = when
	return r
}

func operationRecordOf(o *hal.Operation, thread uint64) operationRecord {
	r := operationRecord{ID: o.ID, Kind: o.Kind.String(), Device: -1, Version: o.Version, Token: o.Token, Thread: thread,
		Reads: rangeRecords(o.Reads), Writes: rangeRecords(o.Writes), Site: o.Site, Host: o.Host, Name: o.Name,
		Launch: o.Launch, Branch: o.Branch, Node: o.Node}
	if o.Stream != nil {
		r.Device, r.Stream = o.Stream.Device().Ordinal(), o.Stream.Index()
	}
	if o.Event != nil {
		r.Event = o.Event.ID()
	}
	r.OtherDevice = r.Device
	if o.Other != nil {
		r.OtherDevice, r.Other = o.Other.Device().Ordinal(), o.Other.Index()
	}
	return r
}

func rangeRecords(list []hal.Range) []rangeRecord {
	records := make([]rangeRecord, 0, len(list))
	for _, r := range list {
		records = append(records, rangeRecord(r))
	}
	return records
}

// ExecutedStart begins to record when operations run.
func ExecutedStart() (zero int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return nothing(r.FollowExecution(true)) })
}

// RuntimeNow returns nanoseconds of the clock that operations are timed with.
func RuntimeNow() (ns int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return r.Now(), nil })
}

// ExecutedTake returns what ran since the last call: a list of executionRecord.
func ExecutedTake() (executions string, err error) {
	return onRuntime(func(r *hal.Runtime) (string, error) {
		list := []executionRecord{}
		for _, x := range r.Executions() {
			list = append(list, executionRecord{uint64(x.Tag), x.Began, x.Ended})
		}
		return encode(list), nil
	})
}

// ExecutedStop ends what ExecutedStart began.
func ExecutedStop() (zero int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return nothing(r.FollowExecution(false)) })
}

// HostAccess notifies listeners that the host reads, or with write writes, n bytes.
func HostAccess(addr, n uint64, write int64) (zero int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) {
		return nothing(r.HostAccess(caller(), hal.Range{Start: addr, Size: n}, write != 0))
	})
}
