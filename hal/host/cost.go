package host

// The virtual time that operations take under a deterministic schedule.
const (
	minCostNS  = 1_000  // of every operation
	callCostNS = 10_000 // of a function
	bytesPerNS = 10     // bytes of a copy or fill in a nanosecond
)

func cost(o *op) int64 {
	switch o.kind {
	case opCall, opPass, opReport, opReportPass:
		return callCostNS
	case opWork:
		switch w := o.ref.(work).(type) {
		case delayWork:
			return w.ns
		case *copyWork:
			return minCostNS + int64(w.Width*w.Height/bytesPerNS)
		case *fillWork:
			return minCostNS + int64(w.Count*uint64(w.Size)/bytesPerNS)
		}
		return callCostNS
	}
	return minCostNS
}
