package hal

import (
	"slices"
	"sync"
)

// sources are the copies from pinned memory that have run and that no host thread may
// have waited for yet: their sources are compared again when the host begins a wait,
// since to change one before that is wrong however early the copy ran.
type sources struct {
	mu   sync.Mutex // held while memory is compared, so that none is returned meanwhile
	list []*copySource
}

type copySource struct {
	id  uint32
	c   CopySpec
	r   Range
	sum uint32
	in  *Inspector
}

// size returns how many bytes are compared.
func (s *copySource) size() uint64 { return s.c.Width * s.c.Height }

const (
	// maxSources is how many copies are compared at the begin of a wait.
	maxSources = 64
	// maxSourceBytes bounds the bytes of all of them, and of each.
	maxSourceBytes = 64 << 20
)

// add keeps the source of a copy that has just run.
func (l *sources) add(s *copySource) {
	if s.in.InUse == nil || s.size() > maxSourceBytes {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, s)
	first, bytes := len(l.list), uint64(0)
	for first > 0 && len(l.list)-first < maxSources && bytes+l.list[first-1].size() <= maxSourceBytes {
		first--
		bytes += l.list[first].size()
	}
	l.list = slices.Delete(l.list, 0, first)
}

// CompareSources calls the inspector for copies whose sources have changed since they ran,
// and that no host thread has waited for. Each wait of the host begins with it.
//
// Contract: V42.
func (rt *Runtime) CompareSources() {
	i := rt.inspector.Load()
	if i == nil || i.InUse == nil {
		return
	}
	l := &rt.sources
	l.mu.Lock()
	list := slices.Clone(l.list)
	l.mu.Unlock()
	waited := map[*copySource]bool{}
	for _, s := range list {
		waited[s] = s.in != i || !i.InUse(s.id) // without the lock: it is a callback
	}
	var changed []*copySource
	l.mu.Lock()
	l.list = slices.DeleteFunc(l.list, func(s *copySource) bool {
		if waited[s] {
			return true
		}
		if s.c.sum() != s.sum {
			changed = append(changed, s)
			return true
		}
		return false
	})
	l.mu.Unlock()
	for _, s := range changed {
		rt.callInOrder(func() { i.Overwritten(s.id, s.r) })
	}
}

// forget ends the comparisons of memory that is returned, of all with size 0.
func (l *sources) forget(r Range) {
	l.mu.Lock()
	l.list = slices.DeleteFunc(l.list, func(s *copySource) bool {
		return r.Size == 0 || s.r.Start < r.Start+r.Size && r.Start < s.r.Start+s.r.Size
	})
	l.mu.Unlock()
}
