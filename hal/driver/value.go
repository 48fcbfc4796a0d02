package driver

// Condition says what must hold of the 64 bits found in memory and the value that
// a stream waits for. The numbers are those of CUDA and AscendCL.
type Condition uint8

// The conditions.
const (
	// AtLeast: found - value, as a signed number, is not negative, so that counters
	// may wrap around.
	AtLeast Condition = iota
	// Equal: they are the same.
	Equal
	// AnyBit: a bit is set in both.
	AnyBit
	// MissingBit: a bit is set in neither.
	MissingBit
	// Conditions is how many there are.
	Conditions
)

// Met reports whether the condition holds.
func (c Condition) Met(found, value uint64) bool {
	switch c {
	case AtLeast:
		return int64(found-value) >= 0
	case Equal:
		return found == value
	case AnyBit:
		return found&value != 0
	}
	return ^(found | value) != 0
}

// String returns the condition as it is put before the value in texts.
func (c Condition) String() string {
	return [...]string{"at least", "equal to", "any bit of", "a bit outside"}[c]
}

// Value describes a write of 64 bits by a stream, or a stream's wait for them.
type Value struct {
	// Addr is a multiple of 8, in device or pinned memory.
	Addr, Value uint64
	// Condition of a wait.
	Condition Condition
	// On is Pinned or OnDevice.
	On  Where
	Tag Tag
}
