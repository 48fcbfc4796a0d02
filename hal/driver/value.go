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

// Narrow is added to a condition where memory has 32 bits; a write has it alone.
const Narrow Condition = 1 << 7

// IsNarrow reports whether the value has 32 bits.
func (c Condition) IsNarrow() bool { return c&Narrow != 0 }

// Met reports whether the condition holds.
func (c Condition) Met(found, value uint64) bool {
	if c.IsNarrow() {
		return c.metNarrow(uint32(found), uint32(value))
	}
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

func (c Condition) metNarrow(found, value uint32) bool {
	switch c &^ Narrow {
	case AtLeast:
		return int32(found-value) >= 0
	case Equal:
		return found == value
	case AnyBit:
		return found&value != 0
	}
	return ^(found | value) != 0
}

// String returns the condition as it is put before the value in texts.
func (c Condition) String() string {
	return [...]string{"at least", "equal to", "any bit of", "a bit outside"}[c&^Narrow]
}

// Value describes a write of 64 bits by a stream, or of 32, or a stream's wait for them.
type Value struct {
	// Addr is a multiple of the size, in device or pinned memory.
	Addr, Value uint64
	// Condition of a wait, and the size.
	Condition Condition
	// On is Pinned or OnDevice.
	On  Where
	Tag Tag
	// Gone, of a wait for what another process writes, returns nil while it may still do so. With an error the stream goes on,
	// and has failed. It may be called from time to time, with no lock held; nil if nobody can tell.
	Gone func() *Error
}
