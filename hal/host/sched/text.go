package sched

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"halstream/hal/driver"
)

// Bounds of the numbers in a schedule's text.
const (
	maxDepth = 64
	maxHolds = 1 << 20
)

// newPolicy reads the text of a deterministic schedule:
//
//	fifo | fifo unlogged | earliest | latest | random SEED | pct SEED DEPTH STEPS | starve STREAM | holds S.N>X,...
//
// where X is S.N, an operation, or hM, a call.
func newPolicy(text string, d *deterministic) (policy, error) {
	if text == driver.Unlogged {
		return &fifo{}, nil
	}
	name, rest, _ := strings.Cut(text, " ")
	fields := strings.Fields(rest)
	numbers := make([]uint64, len(fields))
	wrong := func(why string) error {
		return driver.Errorf(driver.InvalidValue, "set schedule", "%q is no schedule: %s", text, why)
	}
	if name != "holds" {
		for i, f := range fields {
			n, err := strconv.ParseUint(f, 10, 64)
			if err != nil {
				return nil, wrong(f + " is not a whole number")
			}
			numbers[i] = n
		}
	}
	want, known := map[string]int{"fifo": 0, "earliest": 0, "latest": 0, "random": 1, "pct": 3, "starve": 1, "holds": 1}[name]
	if !known {
		return nil, wrong("choose parallel, fifo, earliest, latest, random, pct, starve or holds")
	}
	if len(fields) != want && (name != "holds" || len(fields) != 0) {
		return nil, wrong(name + " takes " + strconv.Itoa(want) + " number(s)")
	}
	switch name {
	case "earliest":
		return &earliest{}, nil
	case "latest":
		return &latest{}, nil
	case "random":
		return &random{source: rand.NewPCG(numbers[0], 1)}, nil
	case "pct":
		if numbers[1] < 1 || numbers[1] > maxDepth {
			return nil, wrong("the depth is 1 to " + strconv.Itoa(maxDepth))
		}
		return newPCT(numbers[0], numbers[1], numbers[2]), nil
	case "starve":
		if numbers[0] < 1 || numbers[0] > 1<<31 {
			return nil, wrong("streams are numbered from 1")
		}
		return &starve{number: uint32(numbers[0])}, nil
	case "holds":
		rules, n := map[opName][]release{}, 0
		if len(fields) == 1 {
			for _, part := range strings.Split(fields[0], ",") {
				op, u, ok := readHold(part)
				if n++; !ok || n > maxHolds {
					return nil, wrong(part + " is not of the form 1.2>3.4 or 1.2>h5")
				}
				rules[op] = append(rules[op], u)
			}
		}
		return &holds{rules: rules, d: d}, nil
	}
	return &fifo{}, nil
}

func readHold(text string) (op opName, u release, ok bool) {
	left, right, found := strings.Cut(text, ">")
	op, ok = readName(left)
	if !found || !ok {
		return op, u, false
	}
	if number, is := strings.CutPrefix(right, "h"); is {
		n, err := strconv.ParseUint(number, 10, 31)
		u.call = uint32(n)
		return op, u, err == nil && n > 0
	}
	u.opName, ok = readName(right)
	return op, u, ok
}

func readName(text string) (opName, bool) {
	stream, op, _ := strings.Cut(text, ".")
	s, bad := strconv.ParseUint(stream, 10, 31)
	o, worse := strconv.ParseUint(op, 10, 31)
	return opName{uint32(s), uint32(o)}, bad == nil && worse == nil && s > 0 && o > 0
}
