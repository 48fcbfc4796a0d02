package pybuild

import (
	"halstream/bindings/records"
	"halstream/hal"
)

// TraceStart begins to log what is enqueued and what the host does, and
// returns the handle of the log.
func TraceStart() (handle int64, err error) { return startLog(false) }

// TraceStartTimed is TraceStart for a log with times.
func TraceStartTimed() (handle int64, err error) { return startLog(true) }

func startLog(times bool) (handle int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return insert(r.Log(times)), nil })
}

// TraceTake returns the operations that a log has gathered since the last call: a
// list of records.Operation.
func TraceTake(handle int64) (operations string, err error) {
	return on(handle, "trace", "trace", func(l *hal.Log) (string, error) {
		list := []records.Operation{}
		for when, o := range l.Take().All() {
			list = append(list, records.Of(when, &o))
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

// ExecutedStart begins to record when operations run.
func ExecutedStart() (zero int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return nothing(r.FollowExecution(true)) })
}

// RuntimeNow returns nanoseconds of the clock that operations are timed with.
func RuntimeNow() (ns int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return r.Now(), nil })
}

// ExecutedTake returns what ran since the last call: a list of records.Execution.
func ExecutedTake() (executions string, err error) {
	return onRuntime(func(r *hal.Runtime) (string, error) {
		return encode(records.Executions(r)), nil
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
