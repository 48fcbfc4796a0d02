package host

// What operations cost, in nanoseconds.
const (
	costLeast = 1_000  // of every operation
	costCall  = 10_000 // of a function
	bytesPer  = 10     // bytes of a copy or fill in a nanosecond
)

func cost(o *op) int64 {
	switch o.kind {
	case opCall, opPass, opReport, opReportPass:
		return costCall
	case opWork:
		switch w := o.ref.(work).(type) {
		case delayWork:
			return w.ns
		case *copyWork:
			return costLeast + int64(w.Width*w.Height/bytesPer)
		case *fillWork:
			return costLeast + int64(w.Count*uint64(w.Size)/bytesPer)
		}
		return costCall
	}
	return costLeast
}
