package driver

import "halstream/hal/status"

// StatusStream is implemented by streams whose state C code of the process may
// read without a call.
type StatusStream interface {
	// Status returns the stream's words, always the same ones.
	Status() *status.Stream
	// WaitPlace makes later work wait until another stream of the backend, which has
	// words, too, has reached a place of its timeline: that of a record made without
	// a call.
	WaitPlace(other Stream, place uint64) error
}

// StatusDevice is implemented by devices whose streams are StatusStreams.
type StatusDevice interface {
	// WithStatus returns the stream that has these words and work pending, nil if
	// there is none. It may have been closed.
	WithStatus(w *status.Stream) Stream
}

// StatusEvent is implemented by events of devices whose streams are StatusStreams.
type StatusEvent interface {
	// Recorded makes known that the event was recorded, without a call, on a stream that
	// had no work: that record is the latest one, and done.
	Recorded()
	// RecordedAt makes known that an event without a record was recorded, without a
	// call, at a place of the timeline of a stream with words.
	RecordedAt(s Stream, place uint64)
	// Place returns the place that the latest record stands for, by the words of its
	// stream; nil if there is no record, or one made known by Recorded. It is called
	// by the thread that made the record, while no other one makes a record.
	Place() (w *status.Stream, place uint64)
}
