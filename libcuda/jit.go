package libcuda

// jitOptions are the options of a compilation, of which only the places for texts have a meaning. Nothing else of what the
// program has passed is looked at after the call in which it did.
type jitOptions struct {
	errors, infos log
}

// log is a place for a text. Where the program has given one, it keeps the option that has its size, into which the length
// of the text goes.
type log struct {
	place, room uint64
	size        *uint64
}

// Options with places for texts. Source: CUDA driver API, CUjit_option.
const (
	infoLog      = 3
	infoLogSize  = 4
	errorLog     = 5
	errorLogSize = 6
)

// optionsOf returns the options that three arguments hold: how many there are, their numbers, and a value for each.
func optionsOf(a *args, count, numbers, values int) (o jitOptions) {
	n := uint64(a.u32(count))
	given := list[uint64](a, values, n)
	for i, number := range list[int32](a, numbers, n) {
		if i >= len(given) {
			break
		}
		switch number {
		case infoLog:
			o.infos.place = given[i]
		case infoLogSize:
			o.infos.room, o.infos.size = given[i]&(1<<31-1), &given[i]
		case errorLog:
			o.errors.place = given[i]
		case errorLogSize:
			o.errors.room, o.errors.size = given[i]&(1<<31-1), &given[i]
		}
	}
	return o
}

// write puts a text into a log.
func (l *log) write(text string) {
	if l.place == 0 || l.room == 0 {
		return
	}
	values := args{l.place, l.room}
	_ = putText(&values, 0, 1, text)
	*l.size = min(uint64(len(text)), l.room-1)
}

// finishCompile tells of the end of a compilation, whose error it returns.
func (o *jitOptions) finishCompile(err error) error {
	text := ""
	if err != nil {
		text = err.Error()
	}
	o.errors.write(text)
	o.infos.write("")
	return err
}
