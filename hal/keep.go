package hal

import (
	"slices"
	"sync"
	"sync/atomic"
)

// keep is what a graph keeps alive: functions of the program, and arguments of native
// functions. The graph, its clones, each executable and each launch in flight count as
// users; what is kept is released after the last one.
type keep struct {
	rt    *Runtime
	users atomic.Int64
	mu    sync.Mutex
	free  []func()
	// others are what other graphs keep, of which this is a user.
	others []*keep
	// tokens are of functions of the program, and of objects; a graph may have many.
	tokens []uint64
	// modules are those of which nodes launch functions, each of which counts how often it is in such a list.
	modules []*Module
	// blocks are the memory that nodes work on, each of which counts the graphs that do: in the order of the
	// nodes, and as a set. recent are some of them, as most nodes work on what others have worked on just before.
	blocks []*Block
	has    map[*Block]struct{}
	recent [8]*Block
	next   int // of recent, which is used in turns
}

func newKeep(rt *Runtime) *keep {
	k := &keep{rt: rt}
	k.users.Store(1)
	return k
}

// add has f called once, without locks, when there are no users any more.
func (k *keep) add(f func()) {
	k.mu.Lock()
	k.free = append(k.free, f)
	k.mu.Unlock()
}

// addToken keeps a function of the program, or objects, by its token.
func (k *keep) addToken(token uint64) {
	if f := k.rt.kept.Load(); f != nil {
		(*f)(token)
	}
	k.mu.Lock()
	k.tokens = append(k.tokens, token)
	k.mu.Unlock()
}

// hasModule reports whether a module is kept already.
func (k *keep) hasModule(m *Module) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Contains(k.modules, m)
}

// addModule keeps a module for which beginKeep was called.
func (k *keep) addModule(m *Module) {
	k.mu.Lock()
	k.modules = append(k.modules, m)
	k.mu.Unlock()
}

// addKeep keeps what another graph keeps.
func (k *keep) addKeep(other *keep) {
	if other != k {
		other.use()
		k.mu.Lock()
		k.others = append(k.others, other)
		k.mu.Unlock()
	}
}

func (k *keep) use() { k.users.Add(1) }

// tryUse is use where there may be no users any more, so that what was kept is gone: it reports false then.
func (k *keep) tryUse() bool {
	for n := k.users.Load(); n > 0; n = k.users.Load() {
		if k.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// release ends one use. It may be called with locks held, but for those of keeps: what is kept is released on
// another thread.
func (k *keep) release() {
	if tokens := k.releaseTokens(); len(tokens) > 0 {
		go k.drop(tokens)
	}
}

// releaseTokens is release for a caller that drops the functions of the program itself: it returns the tokens of
// those that nothing uses any more.
func (k *keep) releaseTokens() (tokens []uint64) {
	if k.users.Add(-1) > 0 {
		return nil
	}
	k.mu.Lock()
	free, others, modules, blocks := k.free, k.others, k.modules, k.blocks
	tokens = k.tokens
	k.free, k.others, k.tokens, k.modules, k.blocks, k.has, k.recent = nil, nil, nil, nil, nil, nil, [8]*Block{}
	k.mu.Unlock()
	for _, other := range others {
		tokens = append(tokens, other.releaseTokens()...)
	}
	if len(free)+len(modules)+len(blocks) == 0 {
		return tokens
	}
	go func() {
		for _, f := range free {
			f()
		}
		for _, m := range modules {
			m.letGo(1)
		}
		for _, b := range blocks {
			k.releaseBlock(b)
		}
	}()
	return tokens
}

// take keeps what another one has kept, which has no other users and is not used any more.
func (k *keep) take(other *keep) {
	other.mu.Lock()
	free, others, tokens := other.free, other.others, other.tokens
	other.free, other.others, other.tokens = nil, nil, nil
	other.mu.Unlock()
	k.mu.Lock()
	k.free, k.others, k.tokens = append(k.free, free...), append(k.others, others...), append(k.tokens, tokens...)
	k.mu.Unlock()
}

// drop drops functions of the program on the threads that serve them.
func (k *keep) drop(tokens []uint64) {
	for _, token := range tokens {
		if p := k.rt.Funcs.push(0, readyFunc{token: token, drop: true}); p != nil {
			p.Unpark()
		}
	}
}

// keepBlocks keeps the memory that a node works on, where its owner is collected.
func (k *keep) keepBlocks(blocks []*Block) {
	for _, b := range blocks {
		if b == nil || b.isForeign() || !k.addBlock(b) {
			continue
		}
		m := &k.rt.memory
		m.mu.Lock()
		b.graphs++
		m.mu.Unlock()
	}
}

// addBlock adds a block to those that are kept, and reports false if it is one of them.
func (k *keep) addBlock(b *Block) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.Contains(k.recent[:], b) {
		return false
	}
	k.recent[k.next] = b
	k.next = (k.next + 1) % len(k.recent)
	if _, kept := k.has[b]; kept {
		return false
	}
	if k.has == nil {
		k.has = map[*Block]struct{}{}
	}
	k.has[b] = struct{}{}
	k.blocks = append(k.blocks, b)
	return true
}

// releaseBlock ends what keepBlocks has begun for one block.
func (k *keep) releaseBlock(b *Block) {
	m := &k.rt.memory
	m.mu.Lock()
	b.graphs--
	last := b.leftByGraphs()
	m.mu.Unlock()
	if last {
		_ = b.Release(nil)
	}
}
