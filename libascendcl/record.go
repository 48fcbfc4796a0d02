package main

// #include "process.h"
// #include "thread.h"
import "C"

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"halstream/hal"
)

// useSites makes calls keep their stacks, and listeners get their numbers.
func useSites(rt *hal.Runtime) {
	C.hs_acl_stacks = 1
	rt.SetSites(site)
}

// recording is what HALSTREAM_RECORD asks for: a file that says at the end of the process what the program did.
var recording struct {
	path string
	log  *hal.Log // nil under a schedule, of which the fingerprint is enough
	runs bool     // the backend says when operations ran
	rt   *hal.Runtime
}

// record begins the recording that HALSTREAM_RECORD asks for.
func record(rt *hal.Runtime) error {
	if recording.path = os.Getenv("HALSTREAM_RECORD"); recording.path == "" {
		return nil
	}
	recording.rt = rt
	if !rt.Deterministic() {
		useSites(rt)
		recording.log = rt.Log(true)
		recording.runs = rt.FollowExecution(true) == nil
	}
	return nil
}

// tools begins what variables ask for.
func tools(rt *hal.Runtime) error {
	for _, begin := range []func(*hal.Runtime) error{schedule, sanitize, record} {
		if err := begin(rt); err != nil {
			return err
		}
	}
	if sanitizing != nil || recording.path != "" {
		C.hs_acl_report_at_exit()
	}
	return nil
}

// hsAclEnds is called at the end of the process: it returns how much the sanitizer has found.
//
//export hsAclEnds
func hsAclEnds() C.int {
	found := report()
	if recording.path != "" {
		if err := writeRecord(recording.rt); err != nil {
			fmt.Fprintf(os.Stderr, "halstream: the record cannot be written: %v\n", err)
		}
	}
	return C.int(found)
}

// The records of operations have the members of those that the Python package reads, OperationRecord and
// ExecutionRecord in _records.py.
type rangeRecord struct {
	Start uint64 `json:"start"`
	Size  uint64 `json:"size"`
}

type operationRecord struct {
	ID          uint32        `json:"id"`
	Kind        string        `json:"kind"`
	Device      int           `json:"device"`
	Stream      uint64        `json:"stream"`
	Thread      uint64        `json:"thread"`
	Event       uint64        `json:"event"`
	Version     uint64        `json:"version"`
	OtherDevice int           `json:"other_device"`
	Other       uint64        `json:"other"`
	Token       uint64        `json:"token"`
	Reads       []rangeRecord `json:"reads"`
	Writes      []rangeRecord `json:"writes"`
	Site        uint32        `json:"site"`
	Host        bool          `json:"host"`
	Name        string        `json:"name"`
	Launch      uint32        `json:"launch"`
	Branch      int           `json:"branch"`
	Node        int           `json:"node"`
	Time        int64         `json:"time"`
}

type executionRecord struct {
	ID    uint64 `json:"id"`
	Began int64  `json:"began"`
	Ended int64  `json:"ended"`
}

// programRecord is what the file has.
type programRecord struct {
	Fingerprint string             `json:"fingerprint"` // "" without a schedule
	Operations  []operationRecord  `json:"operations"`
	Executed    []executionRecord  `json:"executed"` // null where the backend does not say
	Sites       map[string][]frame `json:"sites"`
}

func writeRecord(rt *hal.Runtime) error {
	r := programRecord{Operations: []operationRecord{}, Sites: map[string][]frame{}}
	if rt.Deterministic() {
		r.Fingerprint = rt.Fingerprint()
	}
	if recording.log != nil {
		for when, o := range recording.log.Take().All() {
			r.Operations = append(r.Operations, recordOf(when, &o))
			if key := strconv.Itoa(int(o.Site)); o.Site != 0 && r.Sites[key] == nil {
				r.Sites[key] = stackOf(o.Site).frames()
			}
		}
	}
	if recording.runs {
		r.Executed = []executionRecord{}
		for _, x := range rt.Executions() {
			r.Executed = append(r.Executed, executionRecord{uint64(x.Tag), x.Began, x.Ended})
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(recording.path, text, 0o666)
}

func recordOf(when int64, o *hal.Operation) operationRecord {
	r := operationRecord{ID: o.ID, Kind: o.Kind.String(), Device: -1, Version: o.Version, Token: o.Token, Site: o.Site,
		Reads: rangesOf(o.Reads), Writes: rangesOf(o.Writes), Host: o.Host, Name: o.Name, Launch: o.Launch,
		Branch: o.Branch, Node: o.Node, Time: when}
	if o.Thread != nil {
		r.Thread = o.Thread.ID
	}
	if o.Stream != nil {
		r.Device, r.Stream = o.Stream.Device().Ordinal(), o.Stream.Index()
	}
	if o.Event != nil {
		r.Event = o.Event.ID()
	}
	if r.OtherDevice = r.Device; o.Other != nil {
		r.OtherDevice, r.Other = o.Other.Device().Ordinal(), o.Other.Index()
	}
	return r
}

func rangesOf(list []hal.Range) []rangeRecord {
	records := make([]rangeRecord, 0, len(list))
	for _, one := range list {
		records = append(records, rangeRecord(one))
	}
	return records
}
