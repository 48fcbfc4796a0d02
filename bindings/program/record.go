package program

// #include "exit.h"
// #include "thread.h"
import "C"

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"halstream/bindings/records"
	"halstream/hal"
)

// useSites makes calls keep their stacks, and listeners get their numbers.
func useSites(rt *hal.Runtime) {
	C.hs_program_stacks = 1
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

// Tools begins what variables ask for.
func Tools(rt *hal.Runtime) error {
	for _, begin := range []func(*hal.Runtime) error{schedule, sanitize, record} {
		if err := begin(rt); err != nil {
			return err
		}
	}
	if sanitizing != nil || recording.path != "" {
		C.hs_program_report_at_exit()
	}
	return nil
}

// halstreamProgramEnds is called at the end of the process: it returns how much the sanitizer has found.
//
//export halstreamProgramEnds
func halstreamProgramEnds() C.int {
	found := report()
	if recording.path != "" {
		if err := writeRecord(recording.rt); err != nil {
			fmt.Fprintf(os.Stderr, "halstream: the record cannot be written: %v\n", err)
		}
	}
	return C.int(found)
}

// programRecord is what the file has.
type programRecord struct {
	Fingerprint string              `json:"fingerprint"` // "" without a schedule
	Operations  []records.Operation `json:"operations"`
	Executed    []records.Execution `json:"executed"` // null where the backend does not say
	Sites       map[string][]frame  `json:"sites"`
}

func writeRecord(rt *hal.Runtime) error {
	r := programRecord{Operations: []records.Operation{}, Sites: map[string][]frame{}}
	if rt.Deterministic() {
		r.Fingerprint = rt.Fingerprint()
	}
	if recording.log != nil {
		for when, o := range recording.log.Take().All() {
			r.Operations = append(r.Operations, records.Of(when, &o))
			if key := strconv.Itoa(int(o.Site)); o.Site != 0 && r.Sites[key] == nil {
				r.Sites[key] = stackOf(o.Site).frames()
			}
		}
	}
	if recording.runs {
		r.Executed = records.Executions(rt)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(recording.path, text, 0o666)
}
