package pybuild

import (
	"fmt"
	"strconv"
	"strings"

	"halstream/hal"
)

// recordSeparator stands between the lines that one call returns.
const separator = "\x1f"

const recordSeparator = "\x1e"

// TraceStart begins to log what is enqueued and what the host does, and
// returns the handle of the log.
func TraceStart() (handle int64, err error) { return startLog(false) }

// TraceStartTimed is TraceStart for a log with times.
func TraceStartTimed() (handle int64, err error) { return startLog(true) }

func startLog(times bool) (handle int64, err error) {
	defer guard(&err)
	r, err := backend()
	if err != nil {
		return 0, err
	}
	return insert(r.Log(times)), nil
}

func findTrace(handle int64) (*hal.Log, error) {
	if t, ok := find(handle).(*hal.Log); ok {
		return t, nil
	}
	return nil, unknown(handle, "trace", "trace")
}

// TraceTake returns the lines that a log has gathered since the last call:
// number, kind, device, stream, thread, event, version, other stream (device:index), token,
// reads, writes, site, 1 for what the host does, and nanoseconds (0 without times).
func TraceTake(handle int64) (lines string, err error) {
	defer guard(&err)
	t, err := findTrace(handle)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, piece := range t.Take() {
		for i := range piece {
			if out.Len() > 0 {
				out.WriteString(recordSeparator)
			}
			writeOperation(&out, &piece[i])
		}
	}
	return out.String(), nil
}

// TraceStop ends a log and forgets it.
func TraceStop(handle int64) (zero int64, err error) {
	defer guard(&err)
	t, err := findTrace(handle)
	if err != nil {
		return 0, err
	}
	t.Stop()
	remove(handle)
	return 0, nil
}

func writeOperation(out *strings.Builder, entry *hal.Logged) {
	o := entry.Operation()
	var thread, event uint64
	other := "0"
	device, index := int64(-1), uint64(0)
	if o.Stream != nil {
		device, index = int64(o.Stream.Device().Ordinal()), o.Stream.Index()
	}
	if o.Thread != nil {
		thread = o.Thread.ID
	}
	if o.Event != nil {
		event = o.Event.ID()
	}
	if o.Other != nil {
		other = fmt.Sprint(o.Other.Device().Ordinal(), ":", o.Other.Index())
	}
	number := func(n uint64) {
		out.WriteString(separator)
		out.WriteString(strconv.FormatUint(n, 10))
	}
	out.WriteString(strconv.FormatUint(uint64(o.ID), 10))
	out.WriteString(separator + o.Kind + separator + strconv.FormatInt(device, 10))
	for _, n := range []uint64{index, thread, event, o.Version} {
		number(n)
	}
	out.WriteString(separator + other)
	number(o.Token)
	out.WriteString(separator + ranges(o.Reads) + separator + ranges(o.Writes))
	number(uint64(o.Site))
	number(uint64(truth(o.Host)))
	out.WriteString(separator + strconv.FormatInt(entry.When(), 10))
}

func ranges(list []hal.Range) string {
	var parts []string
	for _, r := range list {
		parts = append(parts, strconv.FormatUint(r.Start, 10)+"+"+strconv.FormatUint(r.Size, 10))
	}
	return strings.Join(parts, " ")
}

// ExecutedStart begins to note when operations run.
func ExecutedStart() (zero int64, err error) {
	defer guard(&err)
	r, err := backend()
	if err != nil {
		return 0, err
	}
	return 0, raise(r.FollowExecution(true))
}

// RuntimeNow returns nanoseconds of the clock that operations are timed with.
func RuntimeNow() (ns int64, err error) {
	defer guard(&err)
	r, err := backend()
	if err != nil {
		return 0, err
	}
	return r.Now(), nil
}

// ExecutedTake returns what ran since the last call, a line each: number of the
// operation, and when it began and ended in nanoseconds.
func ExecutedTake() (lines string, err error) {
	defer guard(&err)
	r, err := backend()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, x := range r.Executions() {
		out.WriteString(strconv.FormatUint(uint64(x.Tag), 10) + " " +
			strconv.FormatInt(x.Began, 10) + " " + strconv.FormatInt(x.Ended, 10) + "\n")
	}
	return out.String(), nil
}

// ExecutedStop ends it.
func ExecutedStop() (zero int64, err error) {
	defer guard(&err)
	r, err := backend()
	if err != nil {
		return 0, err
	}
	return 0, raise(r.FollowExecution(false))
}

// HostAccess tells that the host reads, or with write writes, n bytes.
func HostAccess(addr, n uint64, write int64) (zero int64, err error) {
	defer guard(&err)
	r, err := backend()
	if err != nil {
		return 0, err
	}
	return 0, raise(r.HostAccess(caller(), hal.Range{Start: addr, Size: n}, write != 0))
}
