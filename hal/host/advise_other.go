//go:build !linux

package host

// giveBack does nothing here: the range keeps its pages until its region ends.
func giveBack([]byte) {}

// largePages does nothing here.
func largePages([]byte, bool) {}
