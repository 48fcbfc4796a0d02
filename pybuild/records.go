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

// encode returns the JSON of a record or of a list of records.
func encode(records any) string {
	text, err := json.Marshal(records)
	if err != nil { // only for types that JSON has no form for
		panic(err)
	}
	return string(text)
}
