// Package pybuild is the flat surface that Python calls: functions on numbers,
// booleans and strings, each returning one value or one value and an error.
package pybuild

// version is set by the build from pyproject.toml (go build -ldflags=-X).
var version = "devel"

// Version returns the version of the package this code was built for.
func Version() string { return version }
