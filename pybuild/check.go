package pybuild

import (
	"encoding/json"
	"strconv"
	"sync/atomic"
	"time"

	"halstream/bindings"
	"halstream/bindings/python"
	"halstream/bindings/records"
	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/order"
)

// checking is the one check of the process, nil while there is none.
var checking *order.Session

// CheckStart begins to look for accesses that nothing orders. The runtime need
// not be open yet. Flag 1 asks for what functions write without saying so,
// under deterministic schedules; flag 2 for accesses seen by the pages of memory of host
// devices; flag 4 for operations in the order of the calls. Only one check can be on.
func CheckStart(flags int64) (zero int64, err error) {
	defer guard(&err)
	if checking != nil {
		return 0, raise(driver.Errorf(driver.InvalidValue, "start check", "a check is on already; stop it first"))
	}
	if err := watchPages(flags); err != nil {
		return 0, raise(err)
	}
	checking = order.NewSession(flags&bindings.CheckObserve != 0)
	wantsOrder = flags&bindings.CheckInOrder != 0
	python.AddStacks(1)
	if rt != nil {
		err = followCheck(rt)
	}
	return 0, err
}

// CheckStop ends the check; reports that were not taken are lost. Without a check it does
// nothing.
func CheckStop() (zero int64, err error) {
	defer guard(&err)
	if checking == nil {
		return 0, nil
	}
	checking.Touched(caller())
	checking.Stop()
	_ = watchPages(0)
	checking, seen = nil, nil
	wantsOrder = false
	if python.AddStacks(-1); rt != nil {
		python.FollowSites(rt)
		err = orderCalls(rt)
	}
	return 0, err
}

// CheckFlags changes the flags of the check that is on.
func CheckFlags(flags int64) (zero int64, err error) {
	defer guard(&err)
	if checking != nil {
		if err := watchPages(flags); err != nil {
			return 0, raise(err)
		}
		checking.Observe(flags&bindings.CheckObserve != 0)
		wantsOrder = flags&bindings.CheckInOrder != 0
		if rt != nil {
			err = orderCalls(rt)
		}
	}
	return 0, err
}

// CheckUnwaited returns 1 if memory was accessed by operations that the calling thread has
// not waited for, as far as the check that is on has seen, else 0.
//
// Contract: V26.
func CheckUnwaited() (unwaited int64, err error) {
	defer guard(&err)
	t := caller()
	if checking != nil {
		checking.Touched(t)
		unwaited = truth(checking.Unwaited(t))
	}
	return unwaited, nil
}

// watchPages switches the watch of pages as the flags ask.
func watchPages(flags int64) error {
	on := flags&bindings.CheckPages != 0
	if on && rt != nil && rt.Name() != "host" {
		return driver.Errorf(driver.NotSupported, "watch pages", "the %s backend's memory has no pages of the host", rt.Name())
	}
	python.FollowTouches(on)
	return hal.WatchPages(on)
}

// followCheck makes the check, if one is on, follow a runtime.
func followCheck(r *hal.Runtime) error {
	python.FollowSites(r)
	if checking == nil {
		return nil
	}
	err := orderCalls(r)
	checking.Follow(r)
	return err
}

// CheckTake returns what was found since the last call: a list of findingRecord.
// With finish, waits for a record that was never enqueued are given up first.
func CheckTake(finish int64) (findings string, err error) {
	defer guard(&err)
	list := []findingRecord{}
	if checking != nil {
		checking.Touched(caller())
		if finish != 0 {
			awaitHandedIn()
		}
		for _, f := range checking.Take(finish != 0) {
			seen = append(seen, f.Count)
			list = append(list, findingRecordOf(&f))
		}
	}
	return encode(list), nil
}

// maxHandIn is for how many nanoseconds the end of a check waits for operations that hand in what
// they access when they have run.
const maxHandIn = 2_000_000_000

// awaitHandedIn waits for such operations, which orders nothing, and until the check was told of them and of what they have
// handed in: another thread may be doing so.
func awaitHandedIn() {
	end := time.Now().Add(maxHandIn)
	wait := func(p driver.Point) { await(p, max(0, int64(time.Until(end)))) }
	wait(checking.Notified())
	streams := checking.Awaited()
	for _, s := range streams {
		if p, err := s.DrainPoint(caller()); err == nil {
			wait(p)
		}
	}
	if len(streams) > 0 {
		wait(checking.Notified())
	}
}

// seen is how often what CheckTake has returned since the start was seen.
var seen []*atomic.Int64

// CheckCounts returns how often each report that CheckTake has returned since the start
// was seen, in the same order.
func CheckCounts() (counts string, err error) {
	defer guard(&err)
	list := make([]int64, len(seen))
	for i, n := range seen {
		list[i] = pairs(n)
	}
	return encode(list), nil
}

func pairs(n *atomic.Int64) int64 {
	if n == nil {
		return 1
	}
	return n.Load()
}

// CheckFound returns how many reports CheckTake would return; it may find more.
func CheckFound() (n int64, err error) {
	defer guard(&err)
	if checking == nil {
		return 0, nil
	}
	return int64(checking.Found()), nil
}

// CheckForget says that a range of pageable memory may be allocated again.
func CheckForget(addr, n uint64) (zero int64, err error) {
	defer guard(&err)
	if checking != nil {
		checking.Forget(caller(), hal.Range{Start: addr, Size: n})
	}
	return 0, nil
}

// CheckExposed says that the program may write to a range of memory unseen from now on.
func CheckExposed(addr, n uint64) (zero int64, err error) {
	defer guard(&err)
	if checking != nil {
		checking.Exposed(hal.Range{Start: addr, Size: n})
	}
	return 0, nil
}

// CheckOrder says what the calling thread did with an object that orders threads, such as a
// lock: 0 released it, 1 acquired it, 2 began behind it, 3 ended, 4 the object was collected.
func CheckOrder(what int64, object uint64) (zero int64, err error) {
	defer guard(&err)
	if checking != nil && rt != nil {
		checking.Order(caller(), order.HostOrder(what), object)
	}
	return 0, nil
}

// CheckThreads says that CheckOrder reports the beginning of threads from now on.
func CheckThreads() (zero int64, err error) {
	defer guard(&err)
	if checking != nil {
		checking.ObserveThreads()
	}
	return 0, nil
}

// CheckMade returns where streams and live memory were made since the start: a list
// of madeRecord.
func CheckMade() (made string, err error) {
	defer guard(&err)
	list := []madeRecord{}
	if checking != nil {
		for _, o := range checking.Origins() {
			list = append(list, madeRecord(o))
		}
	}
	return encode(list), nil
}

// CheckStats returns what the check has seen and what it keeps: a checkRecord.
func CheckStats() (counts string, err error) {
	defer guard(&err)
	var s order.Stats
	if checking != nil {
		s = checking.Stats()
	}
	sharing, unwatched := hal.UnseenBlocks()
	return encode(checkRecord{s.Operations, s.Reports, s.Dropped, s.Streams, s.Events, s.Pieces, s.Threads,
		s.Compared, s.Partly, s.Paged, s.Untouched, s.Beside, hal.UnknownTouches(), sharing, unwatched}), nil
}

func findingRecordOf(f *order.Finding) findingRecord {
	var kernel hal.KernelFinding
	if f.Kernel != nil {
		kernel = *f.Kernel
	}
	return findingRecord{
		Check: kernel.Check, Text: kernel.Text,
		Category: string(f.Category), Pairs: pairs(f.Count), Range: records.Range(f.Range),
		BlockKind: int(f.Kind), Block: records.Range(f.Block), BlockSite: f.BlockSite,
		Why: string(f.Reason.Why), Memory: string(f.Reason.Memory), Devices: f.Reason.Devices,
		Schedule: f.Schedule, First: accessRecordOf(f.First, f.FirstSize), Second: accessRecordOf(f.Second, f.SecondSize),
		Wait: (*noteRecord)(f.Reason.Wait), Record: (*noteRecord)(f.Reason.Record),
	}
}

func accessRecordOf(a order.Access, size uint64) accessRecord {
	var node *graphNodeRecord
	if n := a.Node; n != nil {
		node = &graphNodeRecord{n.Index, n.Kind.String(), n.Name, n.Site, n.Captured, n.Device, n.Stream, [][3]string{}}
		for _, in := range n.Inside {
			node.Inside = append(node.Inside, [3]string{strconv.Itoa(in.Index), in.Kind.String(), strconv.Itoa(in.Body)})
		}
	}
	return accessRecord{Node: node, ID: a.ID, Kind: a.Kind.String(), Operation: a.Name, Device: a.Device, Stream: a.Stream, Thread: a.Thread, Site: a.Site,
		Token: a.Token, Write: a.Write, Observed: a.Seen, Host: a.Host, Unknown: a.Unknown, Size: size}
}

// CheckSites returns the call sites of the operations since the start, a list of numbers;
// of none if there were more operations than are kept.
func CheckSites() (sites string, err error) {
	defer guard(&err)
	list := []uint32{}
	if checking != nil {
		list = append(list, checking.Sites()...)
	}
	return encode(list), nil
}

// CheckProve returns for each of several fixes, a list of fixRecord, what the operations since
// the start would be with all of them: a list of the words of order.Verdict.
func CheckProve(fixes string) (verdicts string, err error) {
	defer guard(&err)
	var records []fixRecord
	if err := json.Unmarshal([]byte(fixes), &records); err != nil {
		return "", raise(driver.Errorf(driver.InvalidValue, "prove fixes", "%v", err))
	}
	list := make([]order.Fix, len(records))
	for i, r := range records {
		list[i] = order.Fix{
			Finding: r.Finding, Action: order.Action(r.Action), First: r.First, Second: r.Second, Event: r.Event,
			Sites: r.Sites, After: r.After, Early: r.Early,
		}
	}
	found := make([]order.Verdict, len(list))
	if checking != nil {
		found = checking.Prove(list)
	}
	return encode(found), nil
}

// CheckNearby returns operations around those with given numbers, a list of lists: a
// nearbyRecord. At most most are given for each list.
func CheckNearby(around string, most int64) (nearby string, err error) {
	defer guard(&err)
	var ids [][]uint32
	if err := json.Unmarshal([]byte(around), &ids); err != nil {
		return "", raise(driver.Errorf(driver.InvalidValue, "find nearby operations", "%v", err))
	}
	r := nearbyRecord{Operations: []records.Operation{}, Places: []int{}, Around: make([][]int, len(ids))}
	for i := range r.Around {
		r.Around[i] = []int{}
	}
	if checking != nil {
		all, found := checking.Nearby(ids, int(most))
		place := map[int]int{}
		for i, list := range found {
			for _, at := range list {
				if _, known := place[at]; !known {
					place[at] = len(r.Operations)
					o := records.Of(0, &all[at].Operation)
					o.Thread = all[at].ThreadID
					r.Operations = append(r.Operations, o)
					r.Places = append(r.Places, at)
				}
				r.Around[i] = append(r.Around[i], place[at])
			}
		}
	}
	return encode(r), nil
}
