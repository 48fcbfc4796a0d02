package pybuild

import (
	"strings"

	"halstream/bindings/python"
	"halstream/bindings/waits"
	"halstream/hal"
	"halstream/hal/driver"
)

// HostStarted counts a thread that is about to serve functions.
func HostStarted() (zero int64, err error) {
	defer guard(&err)
	r, err := backend()
	if err != nil {
		return 0, err
	}
	r.Funcs.Start()
	return 0, nil
}

// HostEnded counts one thread less, for one that could not be started.
func HostEnded() (zero int64, err error) {
	defer guard(&err)
	if rt != nil {
		rt.Funcs.Stop()
	}
	return 0, nil
}

// HostAbandon lets streams go on whose functions do not end, and returns how many there are.
func HostAbandon() (n int64, err error) {
	return onRuntime(func(r *hal.Runtime) (n int64, err error) {
		unlocked(func() { n = int64(r.Funcs.Abandon()) })
		return n, nil
	})
}

// failed returns the error of a function that failed: its number if it was checked,
// and '!' or '?' with its text; nil if it is only counted.
func failed(token int64, failure string) *hal.Error {
	text, checked := strings.CutPrefix(failure, "!")
	if !checked {
		return nil
	}
	return &hal.Error{Kind: driver.HostFunction, Op: "call", Text: text, Token: uint64(token)}
}

// QueueNew makes a report queue.
func QueueNew() (id int64, err error) {
	defer guard(&err)
	q := hal.NewReportQueue()
	id = insert(q)
	queueIDs[q] = id
	return id, nil
}

// queueIDs finds the id of a report queue that a stream is subscribed to.
var queueIDs = map[*hal.Queue]int64{}

func queue(id int64, op string) (*hal.Queue, error) {
	if q, ok := find(id).(*hal.Queue); ok {
		return q, nil
	}
	return nil, unknown(id, op, "report queue")
}

// QueueNext takes the next function of a report queue, 0 if none came in time.
func QueueNext(id, limit int64) (token int64, err error) {
	defer guard(&err)
	q, err := queue(id, "process reports")
	if err != nil {
		return 0, err
	}
	t := caller()
	end := waits.After(limit)
	for {
		task, err := q.Next(t, 0)
		if err != nil {
			return 0, raise(err)
		}
		if task == (hal.Task{}) && limit != 0 {
			if _, raised := python.Await(reported{q, t, &task}, end.Left()); raised {
				return 0, nil
			}
		}
		if !task.Drop {
			return int64(task.Token), nil
		}
		dropped = append(dropped, int64(task.Token))
	}
}

// reported is the point at which a report is there, which the wait takes.
type reported struct {
	q    *hal.Queue
	t    *hal.Thread
	task *hal.Task
}

// Queue implements python.ForReports.
func (r reported) Queue() *hal.Queue { return r.q }

// Wait implements driver.Point.
func (r reported) Wait(limit int64) bool {
	*r.task, _ = r.q.Next(r.t, limit) // the query before the wait has checked the thread
	return *r.task != (hal.Task{})
}

// dropped are tokens of reports that will not run, for QueueDropped.
var dropped []int64

// QueueDropped returns the token of a report that will not run, 0 if none.
func QueueDropped() int64 {
	if len(dropped) == 0 {
		return 0
	}
	token := dropped[len(dropped)-1]
	dropped = dropped[:len(dropped)-1]
	return token
}

// QueueDone ends the function taken last.
func QueueDone(id, token int64, failure string) (zero int64, err error) {
	defer guard(&err)
	q, err := queue(id, "process reports")
	if err != nil {
		return 0, err
	}
	q.Done(caller(), failure != "", failed(token, failure))
	return 0, nil
}

// StreamSubscribe sends the reports of a stream to a queue.
func StreamSubscribe(streamID, queueID int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, streamID, "subscribe")
	if err != nil {
		return 0, err
	}
	q, err := queue(queueID, "subscribe")
	if err != nil {
		return 0, err
	}
	return 0, raise(s.Subscribe(t, q))
}

// StreamUnsubscribe undoes StreamSubscribe.
func StreamUnsubscribe(streamID, queueID int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, streamID, "unsubscribe")
	if err != nil {
		return 0, err
	}
	q, err := queue(queueID, "unsubscribe")
	if err != nil {
		return 0, err
	}
	return 0, raise(s.Unsubscribe(t, q))
}

// StreamReportQueue returns the id of the queue a stream is subscribed to, 0 if
// there is none.
func StreamReportQueue(streamID int64) (id int64, err error) {
	defer guard(&err)
	s, err := stream(caller(), streamID, "report")
	if err != nil {
		return 0, err
	}
	return queueIDs[s.ReportQueue()], nil
}

// StreamUseRuntimeThreads settles that a stream's functions run on the runtime's
// own threads.
func StreamUseRuntimeThreads(streamID int64) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, streamID, "launch host function")
	if err != nil {
		return 0, err
	}
	return 0, raise(s.UseRuntimeThreads(t))
}

// QueueUnused returns 1 if no stream is subscribed to a queue and its reports have ended.
func QueueUnused(id int64) (unused int64, err error) {
	defer guard(&err)
	q, err := queue(id, "report queue")
	if err != nil {
		return 0, err
	}
	return truth(q.Unused()), nil
}

// StreamReport enqueues a function for the queue the stream is subscribed to. ranges
// says what it works on, see accesses.
func StreamReport(streamID, queueID, token, block int64, ranges string) (zero int64, err error) {
	defer guard(&err)
	t := caller()
	s, err := stream(t, streamID, "report")
	if err != nil {
		return 0, err
	}
	q, err := queue(queueID, "report")
	if err != nil {
		return 0, err
	}
	a, err := accesses(ranges)
	if err != nil {
		return 0, err
	}
	return enqueued(t, s, s.Report(t, q, uint64(token), block != 0, a))
}
