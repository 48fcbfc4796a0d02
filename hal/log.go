package hal

import (
	"iter"
	"sync"
	"sync/atomic"

	"halstream/hal/driver"
)

// Log collects operations. It costs less than a listener that stores them: it keeps
// few fields of each, in pieces that are never copied and that the collector of garbage
// need not look through.
type Log struct {
	mu   *sync.Mutex // the notifier's, which guards what is collected
	into *Logged
	stop func()
	// clock is nil in a log without times: reading it costs as much as everything else.
	clock func() int64
}

// Logged is what a log has collected between two calls of [Log.Take].
type Logged struct {
	number   uint64 // in the marks of the objects that it knows
	pieces   [][]logEntry
	streams  objects[*Stream]
	events   objects[*Event]
	threads  objects[*Thread]
	names    []string
	numbers  map[string]uint32 // of names
	accesses [][2][]Range
}

// logEntry is an operation without pointers: a log may hold millions. The objects are
// given by their numbers in the lists of Logged, which begin with 1; 0 is none.
type logEntry struct {
	version  uint64
	token    uint64
	when     int64
	id, site uint32
	stream   uint32
	other    uint32
	event    uint32
	thread   uint32
	name     uint32
	launch   uint32 // that it is a node of, 0 for others
	branch   uint32
	node     uint32 // its index plus one, 0 where it is of a graph in that of the launch
	accesses uint32
	kind     OperationKind
	host     bool
	internal bool
}

// logMark is by what number a Logged knows an object. The notifier's lock guards it. It
// holds no pointer, so that an object keeps no log alive.
type logMark struct {
	logged uint64
	number uint32
}

// objects are those of one kind, by number.
type objects[T comparable] struct {
	list    []T
	numbers map[T]uint32 // for objects that bear the mark of another log by now
}

// number returns the number of an object that is not nil, whose mark m is.
func (l *objects[T]) number(logged uint64, one T, m *logMark) uint32 {
	if m.logged == logged {
		return m.number
	}
	n, known := l.numbers[one]
	if !known {
		if l.numbers == nil {
			l.numbers = map[T]uint32{}
		}
		l.list = append(l.list, one)
		n = uint32(len(l.list))
		l.numbers[one] = n
	}
	*m = logMark{logged, n}
	return n
}

// at returns the object of a number, nil for 0.
func (l *objects[T]) at(number uint32) (one T) {
	if number != 0 {
		one = l.list[number-1]
	}
	return one
}

// All returns the operations as listeners see them, each with the time of the call: in
// nanoseconds of [Runtime.Now], 0 in a log without times.
func (l *Logged) All() iter.Seq2[int64, Operation] {
	return func(yield func(int64, Operation) bool) {
		for _, piece := range l.pieces {
			for i := range piece {
				if !yield(piece[i].when, l.operation(&piece[i])) {
					return
				}
			}
		}
	}
}

func (l *Logged) operation(e *logEntry) Operation {
	o := Operation{ID: e.id, Kind: e.kind, Stream: l.streams.at(e.stream), Thread: l.threads.at(e.thread),
		Event: l.events.at(e.event), Version: e.version, Other: l.streams.at(e.other), Token: e.token, Site: e.site,
		Host: e.host, Internal: e.internal, Launch: e.launch, Branch: int(e.branch), Node: int(e.node) - 1}
	if e.name != 0 {
		o.Name = l.names[e.name-1]
	}
	if e.accesses != 0 {
		o.Reads, o.Writes = l.accesses[e.accesses-1][0], l.accesses[e.accesses-1][1]
	}
	return o
}

// logPieceSize is the number of operations in one piece: few enough for the allocator
// to take its memory from a list, since a lock is held meanwhile.
const logPieceSize = 256

// lists numbers all Logged there ever were.
var lists atomic.Uint64

func newLogged() *Logged { return &Logged{number: lists.Add(1)} }

// add appends an operation. The caller holds mu.
func (g *Log) add(o *Operation) {
	l := g.into
	e := l.next()
	e.kind = o.Kind
	e.version, e.token, e.id, e.site, e.host, e.internal = o.Version, o.Token, o.ID, o.Site, o.Host, o.Internal
	if o.Stream != nil {
		e.stream = l.streams.number(l.number, o.Stream, &o.Stream.mark)
	}
	if o.Other != nil {
		e.other = l.streams.number(l.number, o.Other, &o.Other.mark)
	}
	if o.Event != nil {
		e.event = l.events.number(l.number, o.Event, &o.Event.mark)
	}
	if o.Thread != nil {
		e.thread = l.threads.number(l.number, o.Thread, &o.Thread.mark)
	}
	if o.Name != "" {
		e.name = l.name(o.Name)
	}
	if g.clock != nil {
		e.when = o.time
	}
	if len(o.Reads)+len(o.Writes) > 0 {
		l.accesses = append(l.accesses, [2][]Range{o.Reads, o.Writes})
		e.accesses = uint32(len(l.accesses))
	}
	if o.Kind == OpLaunchGraph && o.Nodes != nil {
		for i := range o.Nodes.All() {
			g.addNode(o, i)
		}
	}
}

// addNode appends a node of a launch. The caller holds mu.
func (g *Log) addNode(launch *Operation, i int) {
	n := launch.Nodes.Node(i)
	o := Operation{ID: launch.NodeID(i), Kind: n.Kind(), Name: n.name, Stream: launch.Stream, Thread: launch.Thread,
		Event: n.event, Token: n.Token(), Site: n.site, time: launch.time}
	if n.kind != driver.ChildNode {
		o.Reads, o.Writes = n.reads, n.writes
	}
	g.add(&o)
	e := g.into.last()
	if launch.Nodes.Inside(i) == nil {
		e.node = uint32(n.index) + 1
	}
	for owner := launch.Nodes.Owner(i); owner >= 0; owner = launch.Nodes.Owner(i) {
		i = owner // a body is on the branch of its node
	}
	e.launch, e.branch = launch.ID, uint32(launch.Nodes.Branch(i))
}

// next makes an entry.
func (l *Logged) next() *logEntry {
	last := len(l.pieces) - 1
	if last < 0 || len(l.pieces[last]) == logPieceSize {
		l.pieces = append(l.pieces, make([]logEntry, 0, logPieceSize))
		last++
	}
	piece := l.pieces[last]
	piece = piece[:len(piece)+1]
	l.pieces[last] = piece
	return &piece[len(piece)-1]
}

// last returns the entry that was made last.
func (l *Logged) last() *logEntry {
	piece := l.pieces[len(l.pieces)-1]
	return &piece[len(piece)-1]
}

func (l *Logged) name(name string) uint32 {
	n, known := l.numbers[name]
	if !known {
		if l.numbers == nil {
			l.numbers = map[string]uint32{}
		}
		l.names = append(l.names, name)
		n = uint32(len(l.names))
		l.numbers[name] = n
	}
	return n
}

// Take returns the operations collected since the last call.
func (g *Log) Take() *Logged {
	fresh := newLogged()
	g.mu.Lock()
	taken := g.into
	g.into = fresh
	g.mu.Unlock()
	return taken
}

// Stop ends the collection. Take still returns what was collected.
func (g *Log) Stop() { g.stop() }
