package pybuild

import "halstream/hal/stall"

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

// LeaksTake returns what is alive, in the order in which it was made, and then the
// gates that are closed: a list of objectRecord.
func LeaksTake(handle int64) (list string, err error) {
	defer guard(&err)
	l, err := findLeaks(handle)
	if err != nil {
		return "", err
	}
	alive := []objectRecord{}
	for _, o := range append(l.Alive(), blockedAt.Gates()...) {
		alive = append(alive, objectRecord(o))
	}
	return encode(alive), nil
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
