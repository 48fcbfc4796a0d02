package pybuild

import (
	"cmp"
	"encoding/json"
	"slices"

	"halstream/hal/stall"
)

// LeaksStart begins to note what is made and given up, and returns a handle.
func LeaksStart() (handle int64, err error) {
	defer guard(&err)
	r, err := backend()
	if err != nil {
		return 0, err
	}
	return insert(stall.Track(r)), nil
}

func findLeaks(handle int64) (*stall.Leaks, error) {
	if l, ok := find(handle).(*stall.Leaks); ok {
		return l, nil
	}
	return nil, unknown(handle, "list what is alive", "list")
}

// LeaksTake returns what is alive, in the order in which it was made: JSON, a list
// of objects with the fields of stall.Object. Gates that are closed follow, with
// the kind "gate".
func LeaksTake(handle int64) (list string, err error) {
	defer guard(&err)
	l, err := findLeaks(handle)
	if err != nil {
		return "", err
	}
	var gates []stall.Object
	for number, site := range gateSites {
		gates = append(gates, stall.Object{Kind: "gate", Number: number, Site: site})
	}
	slices.SortFunc(gates, func(a, b stall.Object) int { return cmp.Compare(a.Number, b.Number) })
	text, err := json.Marshal(append(l.Alive(), gates...))
	return string(text), raise(err)
}

// LeaksStop ends it.
func LeaksStop(handle int64) (zero int64, err error) {
	defer guard(&err)
	l, err := findLeaks(handle)
	if err != nil {
		return 0, err
	}
	l.Stop()
	remove(handle)
	return 0, nil
}
