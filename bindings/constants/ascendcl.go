package main

import (
	"bufio"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"halstream/bindings"
	"halstream/bindings/ascendcl"
)

// headers are those of AscendCL.
const headers = "libascendcl/package/include/acl"

// writeAscendCL writes the module halstream.acl._ascendcl.
func writeAscendCL(out *bufio.Writer) error {
	numbers, err := ascendcl.Numbers(headers)
	if err != nil {
		return err
	}
	fmt.Fprint(out, "\"\"\"Numbers and rules of AscendCL. The build writes this module: see bindings/constants.\"\"\"\n\n"+
		"from typing import Final\n\n# The numbers of its headers.\n")
	for _, n := range numbers {
		fmt.Fprintf(out, "%s: Final = %d\n", n.Name, n.Is)
	}
	for _, s := range []section{
		{"What an Ascend A2 or A3 device has.", "MOST", []value{
			{"STREAMS", ascendcl.MostStreams}, {"EVENTS", ascendcl.MostEvents}, {"NOTIFIES", ascendcl.MostNotifies},
		}},
		{"The least urgent priority of a stream; 0 to it are the core's -7 to 0.", "LEAST", []value{
			{"PRIORITY", ascendcl.LeastPriority},
		}},
		{"Flags of streams that are kept, and those of streams that belong to a model or a chip.", "STREAM", []value{
			{"KEPT", ascendcl.KeptStreamFlags}, {"HARDWARE", ascendcl.HardwareStreamFlags},
		}},
		{"Flags of events: those that may be combined, those of aclrtCreateEvent, those without which no stream can wait.", "EVENT",
			[]value{{"COMMON", ascendcl.CommonEventFlags}, {"DEFAULT", ascendcl.DefaultEventFlags},
				{"WAITABLE", ascendcl.WaitableEventFlags}}},
		{"What may be joined to a policy of allocations.", "POLICY", []value{{"JOINED", ascendcl.JoinedPolicies}}},
	} {
		s.write(out)
	}
	fmt.Fprint(out, "\n# Kinds of the core's errors -> code, where a function does not say otherwise.\nBY_KIND: Final = {\n")
	for _, kind := range slices.Sorted(maps.Keys(ascendcl.ByKind)) {
		fmt.Fprintf(out, "    %s: %d,\n", strconv.Quote(kind.String()), ascendcl.ByKind[kind])
	}
	fmt.Fprint(out, "}\n\n# CUDA's number of a rule of captures -> code.\nBY_RULE: Final = {\n")
	for _, rule := range slices.Sorted(maps.Keys(ascendcl.ByRule)) {
		fmt.Fprintf(out, "    %d: %d,\n", rule, ascendcl.ByRule[rule])
	}
	fmt.Fprint(out, "}\n\n# Kind of a copy -> whether source and target are a device's.\nCOPY_ENDS: Final = {\n")
	for kind := int32(0); ascendcl.CopyKindExists(kind); kind++ {
		if source, target, any := ascendcl.CopyEnds(kind); !any {
			fmt.Fprintf(out, "    %d: (%s, %s),\n", kind, truth(source), truth(target))
		}
	}
	fmt.Fprint(out, "}\n\n# Of an event: (its flags, whether it is of the newer kind) -> its flags in the core; no other event can be made.\n"+
		"EVENTS: Final = {\n")
	for _, ex := range []bool{false, true} {
		for flags := uint32(0); flags <= 0xff; flags++ {
			if ascendcl.EventFlagsExist(flags, ex) {
				fmt.Fprintf(out, "    (%d, %s): %d,\n", flags, truth(ex), bindings.EventFlags(ascendcl.EventOptions(flags, ex)))
			}
		}
	}
	fmt.Fprint(out, "}\n")
	return nil
}

func truth(b bool) string {
	if b {
		return "True"
	}
	return "False"
}
