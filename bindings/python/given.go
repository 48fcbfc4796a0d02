package python

// #include "sites.h"
import "C"

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"

	"halstream/bindings/records"
	"halstream/bindings/sites"
)

// A given site is one line of the program, in place of a stack: those that halstream.h's site_new makes, and the
// innermost line of each stack, which can be read without Python's lock.

type givenLine struct {
	file, function string
	number         uint32
}

var givenSites = sites.Numbers[givenLine]{Most: 1 << 20}

// halstreamGivenSite returns the site of a line, 0 if there are too many.
//
//export halstreamGivenSite
func halstreamGivenSite(file *C.char, number C.uint32_t, function *C.char) C.uint32_t {
	site := givenSites.Of(givenLine{C.GoString(file), C.GoString(function), uint32(number)})
	if site == 0 {
		return 0
	}
	return C.uint32_t(site | C.SITE_GIVEN)
}

// lineOf returns the innermost line of the program of a site in words, such as "app.py:7 in main", "" if it is unknown.
func lineOf(site uint32) string {
	l, known := givenSites.At(uint32(C.halstream_site_given(C.uint32_t(site))) &^ C.SITE_GIVEN)
	if !known {
		return ""
	}
	if folder, err := syscall.Getwd(); err == nil { // not os.Getwd, which may name a folder by a link
		l.file = strings.TrimPrefix(l.file, folder+"/")
	}
	text := fmt.Sprintf("%s:%d", l.file, l.number)
	if l.function != "" {
		text += " in " + l.function
	}
	return text
}

// givenText returns a given site as the stack that it stands for: a list of records.Frame, "" if it is unknown.
func givenText(site uint32) string {
	l, known := givenSites.At(site &^ C.SITE_GIVEN)
	if !known {
		return ""
	}
	text, err := json.Marshal([]records.Frame{{File: l.file, Line: int(l.number), Function: l.function}})
	if err != nil { // no text and no number does that
		panic(err)
	}
	return string(text)
}
