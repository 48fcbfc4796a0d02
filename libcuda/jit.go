package libcuda

// jitOptions are the options of a compilation: numbers, and a value for each. Only the places for texts have a meaning.
type jitOptions struct {
	numbers []int32
	values  []uint64
}

// Options with places for texts. Source: CUDA driver API, CUjit_option.
const (
	infoLog      = 3
	infoLogSize  = 4
	errorLog     = 5
	errorLogSize = 6
)

// optionsOf returns the options that three arguments hold.
func optionsOf(a *args, count, numbers, values int) jitOptions {
	n := uint64(a.u32(count))
	return jitOptions{list[int32](a, numbers, n), list[uint64](a, values, n)}
}

// value returns where the value of an option is, nil without the option.
func (o *jitOptions) value(number int32) *uint64 {
	for i, one := range o.numbers {
		if one == number && i < len(o.values) {
			return &o.values[i]
		}
	}
	return nil
}

// tell writes a text into the place of a log, and its length into the option that had the size of the place.
func (o *jitOptions) tell(log, size int32, text string) {
	place, room := o.value(log), o.value(size)
	if place == nil || room == nil || *place == 0 || *room == 0 {
		return
	}
	values := args{*place, *room & (1<<31 - 1)}
	_ = putText(&values, 0, 1, text)
	*room = uint64(min(len(text), int(*room)-1))
}

// ended tells of the end of a compilation.
func (o *jitOptions) ended(err error) error {
	text := ""
	if err != nil {
		text = err.Error()
	}
	o.tell(errorLog, errorLogSize, text)
	o.tell(infoLog, infoLogSize, "")
	return err
}
