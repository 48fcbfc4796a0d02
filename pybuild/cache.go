package pybuild

import (
	"halstream/hal"
	"halstream/hal/bestfit"
)

// CacheNew returns the id of a pool of memory that its user supplies. With exact,
// blocks are given out for their own size only.
func CacheNew(exact bool) (id int64, err error) {
	defer guard(&err)
	return insert(bestfit.NewCache(exact)), nil
}

// onPool asks a pool.
func onPool[T any](id int64, f func(*bestfit.Cache) (T, error)) (T, error) {
	return on(id, "pool", "pool of memory", f)
}

// CacheTake returns the id of a free block, 0 if there is none.
func CacheTake(pool, device_, key int64, size uint64) (id int64, err error) {
	return onPool(pool, func(p *bestfit.Cache) (int64, error) {
		if b := p.Take(int(device_), key, size); b != nil {
			return insert(b), nil
		}
		return 0, nil
	})
}

// CacheReuse tells checks that a block of a pool was given out for work of a stream. It
// does nothing where memory waits for all work that uses it.
func CacheReuse(stream_ int64, addr, size uint64) (zero int64, err error) {
	return onStream(stream_, "allocate", func(t *hal.Thread, s *hal.Stream) (int64, error) {
		s.NoteReuse(t, hal.Range{Start: addr, Size: size})
		return 0, nil
	})
}

// MemStrictReuse returns 1 while dropped memory of caching pools goes back at once, without
// waiting for work of other streams: under a sanitizer or a deterministic schedule.
func MemStrictReuse() (yes int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return truth(r.StrictReuse()), nil })
}

// CacheReserve counts bytes that the user is about to supply.
func CacheReserve(pool, device_ int64, size uint64) (zero int64, err error) {
	return onPool(pool, func(p *bestfit.Cache) (int64, error) { return nothing(p.Reserve(int(device_), size)) })
}

// CacheUnreserve undoes CacheReserve.
func CacheUnreserve(pool, device_ int64, size uint64) (zero int64, err error) {
	return onPool(pool, func(p *bestfit.Cache) (int64, error) {
		p.Unreserve(int(device_), size)
		return 0, nil
	})
}

// CacheAdd gives a pool a segment, named by number, and returns its id as a block in use.
func CacheAdd(pool, device_, key int64, addr, size uint64, number int64) (id int64, err error) {
	return onPool(pool, func(p *bestfit.Cache) (int64, error) {
		return insert(p.Add(int(device_), key, addr, size, number)), nil
	})
}

// CacheFreeAll takes the segments that are free as a whole out of a pool, of one
// key or of every one, and returns a list of their numbers.
func CacheFreeAll(pool, device_, key int64, every bool) (numbers string, err error) {
	return onPool(pool, func(p *bestfit.Cache) (string, error) {
		return encode(append([]int64{}, p.FreeAll(int(device_), key, every)...)), nil
	})
}

// CacheStat returns a figure of a pool: 0 total, 1 free, 2 limit, in bytes; 3 the
// number of free blocks.
func CacheStat(pool, device_, which int64) (n uint64, err error) {
	return onPool(pool, func(p *bestfit.Cache) (uint64, error) {
		s := p.Stats(int(device_))
		return figure("pool statistics", which, s.Total, s.Free, s.Limit, uint64(s.FreeBlocks))
	})
}

// CacheSetLimit bounds the bytes that a pool may hold; 0 is no bound.
func CacheSetLimit(pool, device_ int64, bytes uint64) (zero int64, err error) {
	return onPool(pool, func(p *bestfit.Cache) (int64, error) {
		p.SetLimit(int(device_), bytes)
		return 0, nil
	})
}
