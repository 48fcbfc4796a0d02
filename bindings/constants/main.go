// Constants writes what Python has to know of the core, of the records that it hands over, and of AscendCL, as modules
// into a folder: _constants.py, _record_types.py and _ascendcl.py. The build runs it in the root of the tree; its output
// is in no commit.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"halstream/bindings"
	"halstream/hal"
	"halstream/hal/driver"
	"halstream/hal/order"
)

// section is a list of constants whose names have the same prefix.
type section struct {
	comment string
	prefix  string
	values  []value
}

type value struct {
	name string
	is   any
}

// texts returns constants that are named after their texts.
func texts[T fmt.Stringer](all []T) (values []value) {
	for _, one := range all {
		values = append(values, value{strings.ToUpper(strings.ReplaceAll(one.String(), " ", "_")), one.String()})
	}
	return values
}

func sections() []section {
	return []section{
		{"Kinds of operations, as logs, traces and findings name them.", "OP", texts(hal.OperationKinds())},
		{"Why two accesses have no order.", "WHY", texts(order.Whys)},
		{"What a finding about the life of memory is about.", "MEMORY", texts(order.Memories)},
		{"Categories of findings.", "CATEGORY", texts(order.Categories)},
		{"What a fix adds to a program.", "ACTION", texts(order.Actions)},
		{"Bits of the flags that an event is created with.", "EVENT", []value{
			{"TIMING", bindings.EventTiming}, {"BLOCKING_SYNC", bindings.EventBlockingSync},
			{"INTERPROCESS", bindings.EventInterprocess}, {"NOT_WAITABLE", bindings.EventNotWaitable},
			{"EXTERNAL", bindings.EventExternal},
			{"STANDARD", int(hal.Standard) << bindings.EventKindShift},
			{"FUTURE", int(hal.Future) << bindings.EventKindShift},
			{"RECORDED", int(hal.Recorded) << bindings.EventKindShift},
		}},
		{"Bits of the flags that a stream is created with.", "STREAM", []value{
			{"NON_BLOCKING", bindings.StreamNonBlocking}, {"BLOCK_HOST", bindings.StreamBlockHost},
		}},
		{"Bits of the flags that a check begins with.", "CHECK", []value{
			{"OBSERVE", bindings.CheckObserve}, {"PAGES", bindings.CheckPages},
			{"IN_ORDER", bindings.CheckInOrder},
		}},
		{"Schedules of the host device that Python names.", "SCHEDULE", []value{{"UNLOGGED", driver.Unlogged}}},
		{"What the release of a block waits for.", "RELEASE", []value{
			{"REUSABLE", bindings.ReleaseReusable}, {"IN_ORDER", bindings.ReleaseInOrder},
			{"TRACKED", bindings.ReleaseTracked},
		}},
		{"What an event loop has to do for a wait that has begun.", "AWAIT", []value{
			{"DONE", bindings.AwaitDone}, {"NOTICE", bindings.AwaitNotice}, {"LOOK", bindings.AwaitLook},
		}},
		{"What happened to an object that orders threads of the host.", "ORDER", []value{
			{"RELEASE", int(order.Release)}, {"ACQUIRE", int(order.Acquire)}, {"BEGIN", int(order.Begin)},
			{"END", int(order.End)}, {"FORGET", int(order.Forget)},
		}},
		{"What the operation at the head of a stream waits for.", "NEED", []value{
			{"NOTHING", int(driver.NeedNothing)}, {"GATE", int(driver.NeedGate)}, {"EVENT", int(driver.NeedEvent)},
			{"STREAM", int(driver.NeedStream)}, {"ORDER", int(driver.NeedOrder)},
			{"FUNCTION", int(driver.NeedFunction)}, {"REPORT", int(driver.NeedReport)},
			{"VALUE", int(driver.NeedValue)}, {"NATIVE", int(driver.NeedNative)},
		}},
		{"What must hold of 64 bits of memory for a wait to end.", "CONDITION", []value{
			{"AT_LEAST", int(driver.AtLeast)}, {"EQUAL", int(driver.Equal)}, {"ANY_BIT", int(driver.AnyBit)},
			{"MISSING_BIT", int(driver.MissingBit)},
		}},
	}
}

// writeConstants writes the module halstream._native._constants.
func writeConstants(out *bufio.Writer) error {
	fmt.Fprint(out, "\"\"\"Constants of the core. The build writes this module: see bindings/constants.\"\"\"\n\n"+
		"from typing import Final\n")
	for _, s := range sections() {
		s.write(out)
	}
	return nil
}

func (s section) write(out *bufio.Writer) {
	fmt.Fprintf(out, "\n# %s\n", s.comment)
	for _, v := range s.values {
		text := fmt.Sprint(v.is)
		if _, ok := v.is.(string); ok {
			text = strconv.Quote(text)
		}
		fmt.Fprintf(out, "%s_%s: Final = %s\n", s.prefix, v.name, text)
	}
}

// writeFile has a module written to a file.
func writeFile(path string, write func(*bufio.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	return errors.Join(write(out), out.Flush(), file.Close())
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./bindings/constants FOLDER")
		os.Exit(2)
	}
	err := errors.Join(writeFile(filepath.Join(os.Args[1], "_constants.py"), writeConstants),
		writeFile(filepath.Join(os.Args[1], "_record_types.py"), writeRecords),
		writeFile(filepath.Join(os.Args[1], "_ascendcl.py"), writeAscendCL))
	if err != nil {
		fmt.Fprintln(os.Stderr, "constants:", err)
		os.Exit(1)
	}
}
