// Package vendor is what backends on a vendor's library share. Their libraries differ in names and in details, and agree
// in this: work is enqueued on streams, events are recorded behind it, and a query of an event tells whether the work is done.
//
// The package calls no library and has no C. What it needs of one, a backend passes to it: as a function, or as an
// interface that the backend's types implement. No lock of this package is held during such a call.
package vendor
