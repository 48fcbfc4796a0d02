package python

import (
	"strings"

	"halstream/hal"
)

// What errors say to the program.

// ErrorText returns what was done and what is wrong, and of the function with which a device
// was lost the line of the program that enqueued it.
func ErrorText(e *hal.Error) string {
	if e.Op == "" || strings.HasPrefix(e.Text, e.Op+": ") { // it begins with a function's name
		return e.Text + LineOf(e)
	}
	return e.Op + ": " + e.Text + LineOf(e)
}

// LossText is ErrorText of the error of a lost device, "" for nil.
func LossText(err error) string {
	if e, ok := err.(*hal.Error); ok && e != nil {
		return ErrorText(e)
	}
	return ""
}

// LineOf returns the line of the program that enqueued what has failed in parentheses, such as " (app.py:7 in main)", ""
// if it is not known.
func LineOf(e *hal.Error) string {
	line := lineOf(e.Site)
	if line == "" {
		return ""
	}
	return " (" + line + ")"
}
