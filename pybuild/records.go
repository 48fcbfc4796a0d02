package pybuild

import "encoding/json"

// Everything that crosses the boundary to Python as more than a number or a plain
// text is JSON. The structs of this file are its records; the same records are in
// python/halstream/_records.py, and tests/process/test_records.py compares both.

// errorPrefix begins the text of every error that the runtime reports; an
// errorRecord follows. The same prefix is in buildsupport/pybindgen.py, where C
// writes the error of a forked process.
const errorPrefix = "halstream error: "

// errorRecord is an error.
type errorRecord struct {
	Kind      string `json:"kind"`
	Code      int    `json:"code"`      // the vendor's, 0 without one
	Operation string `json:"operation"` // that failed
	Token     uint64 `json:"token"`     // of the checked function that raised, 0 without one
	Text      string `json:"text"`
}

// frameRecord is a frame of a stack; halstream_site_text in sites.c writes it.
//
//lint:ignore U1000 the declaration that tests compare with both ends
type frameRecord struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
}

// rangeRecord is a range of memory.
type rangeRecord struct {
	Start uint64 `json:"start"`
	Size  uint64 `json:"size"`
}

// operationRecord is an operation of a log: what was enqueued, or what the host did.
type operationRecord struct {
	ID          uint32        `json:"id"`
	Kind        string        `json:"kind"`
	Device      int           `json:"device"` // ordinal, -1 where it concerns no device
	Stream      uint64        `json:"stream"` // index of the stream on its device
	Thread      uint64        `json:"thread"` // the runtime's own number, 0 where no thread made the call
	Event       uint64        `json:"event"`  // number of the event, 0 for none
	Version     uint64        `json:"version"`
	OtherDevice int           `json:"other_device"` // of the stream waited for, else that of the operation
	Other       uint64        `json:"other"`        // index of the stream waited for
	Token       uint64        `json:"token"`        // of a function
	Reads       []rangeRecord `json:"reads"`
	Writes      []rangeRecord `json:"writes"`
	Site        uint32        `json:"site"` // of the call, 0 where it is not known
	Host        bool          `json:"host"` // something that the host did
	Time        int64         `json:"time"` // in nanoseconds, 0 in a log without times
}

// executionRecord is when an operation ran, in nanoseconds.
type executionRecord struct {
	ID    uint64 `json:"id"`
	Began int64  `json:"began"`
	Ended int64  `json:"ended"`
}

// placeRecord is a stream.
type placeRecord struct {
	Device int    `json:"device"`
	Stream uint64 `json:"stream"`
}

// waitRecord is a wait of a host thread that has no limit.
type waitRecord struct {
	Ident  uint64        `json:"ident"`  // of the thread, as threading.get_ident gives it
	Report bool          `json:"report"` // it waits for a report
	On     []placeRecord `json:"on"`
}

// busyRecord is a stream with pending work, and what its first operation waits for.
type busyRecord struct {
	At      placeRecord   `json:"at"`
	Title   string        `json:"title"`
	Pending uint64        `json:"pending"` // operations
	Head    string        `json:"head"`    // the first operation in words
	Need    int           `json:"need"`
	Number  uint64        `json:"number"` // of the gate, the event or the function
	Site    uint32        `json:"site"`   // of the call that enqueued it, 0 where it is not known
	On      []placeRecord `json:"on"`
}

// encode returns the JSON of a record or of a list of records.
func encode(records any) string {
	text, err := json.Marshal(records)
	if err != nil { // only for types that JSON has no form for
		panic(err)
	}
	return string(text)
}
