package order

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"halstream/hal"
)

// check requires that every report is true, and with complete, that whoever has
// an unordered pair has a report of its kind.
func (p *play) check(t *rapid.T, program []step, complete bool) (found bool) {
	want, where := p.o.conflicts()
	reported := map[Category]int{}
	for _, r := range p.c.Take() {
		pair := conflict{min(r.First.ID, r.Second.ID), max(r.First.ID, r.Second.ID)}
		require.Equal(t, want[pair], r.Category, "%v: %v and %v", program, r.First, r.Second)
		require.True(t, slices.ContainsFunc(where[pair], func(w hal.Range) bool {
			return w.Start <= r.Range.Start && r.Range.Start+r.Range.Size <= w.Start+w.Size
		}), "%v lies outside of %v", r.Range, where[pair])
		require.Less(t, r.First.ID, r.Second.ID)
		reported[r.Category]++
	}
	require.True(t, p.c.table.sorted())
	require.Zero(t, p.c.Stats().Held)
	races := 0
	for _, category := range want {
		if category == Race {
			races++
		}
	}
	if complete {
		require.Equal(t, len(want) > 0, len(reported) > 0, "%v: %v", program, want)
		require.Equal(t, races > 0, reported[Race] > 0, "%v: %v", program, want)
	}
	return races > 0
}

// common kinds of steps; waits are frequent, or everything would be a race.
var enqueued = []int{stepAccess, stepAccess, stepAccess, stepCopy, stepNop, stepRecord, stepRecord, stepWait, stepWait,
	stepWait, stepWaitStream, stepWaitStream}

var hostCalls = []int{stepSync, stepSyncEvent, stepSyncDevice, stepHost, stepHost, stepQuery, stepQueryEvent}

func TestV1_reports_against_the_transitive_closure(t *testing.T) {
	for name, c := range map[string]struct {
		kinds    []int
		threads  int
		complete bool
	}{
		"streams":   {enqueued, 1, true},
		"host":      {slices.Concat(enqueued, hostCalls), 1, true},
		"threads":   {slices.Concat(enqueued, hostCalls), 3, true},
		"future":    {slices.Concat(enqueued, []int{stepFutureWait, stepFutureWait, stepFutureRecord, stepSync, stepHost}), 1, true},
		"lifetimes": {slices.Concat(enqueued, hostCalls, []int{stepClose, stepClose, stepTidy}), 2, true},
		"hands in": {slices.Concat(enqueued, hostCalls, []int{stepHandsIn, stepHandsIn, stepHandsIn, stepFutureWait, stepFutureWait,
			stepFutureRecord, stepClose, stepTidy, stepRan}), 3, true},
		"observed": {slices.Concat(enqueued, hostCalls, []int{stepObserved, stepObserved, stepTidy}), 2, false},
		"all": {slices.Concat(enqueued, hostCalls, []int{stepFutureWait, stepFutureRecord, stepClose, stepTidy,
			stepObserved}), 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			racy, clean := 0, 0
			rapid.Check(t, func(t *rapid.T) {
				program := rapid.SliceOfN(steps(c.kinds, c.threads), 1, 60).Draw(t, "program")
				if k.play(program, c.threads).check(t, program, c.complete) {
					racy++
				} else {
					clean++
				}
			})
			t.Logf("%d programs with a race, %d without", racy, clean)
		})
	}
}

// Every byte with an unordered pair is in a report, whatever happens to others.
func TestV1_every_byte_with_an_unordered_pair_is_reported(t *testing.T) {
	k := newKit(t)
	kinds := []int{stepAccess, stepAccess, stepAccess, stepRecord, stepWait, stepWait, stepWaitStream, stepWaitStream,
		stepSync, stepHost, stepQuery, stepFutureWait, stepFutureRecord}
	rapid.Check(t, func(t *rapid.T) {
		program := rapid.SliceOfN(steps(kinds, 2), 10, 60).Draw(t, "program")
		for at := range uint64(20) {
			clipped := slices.Clone(program)
			for i := range clipped {
				s := &clipped[i]
				if s.what != stepAccess && s.what != stepHost {
					continue
				}
				if s.from <= at && at < s.from+s.size {
					s.from, s.size = at, 1
				} else {
					s.what = stepNop
				}
			}
			k.play(clipped, 2).check(t, clipped, true)
		}
	})
}

// Without any one of its waits a program is reported if and only if it then has
// an unordered pair.
func TestV1_deleting_a_wait(t *testing.T) {
	k := newKit(t)
	broken, still := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		program := rapid.SliceOfN(steps(slices.Concat(enqueued, []int{stepSync, stepFutureWait}), 1), 1, 30).Draw(t, "program")
		for i, s := range program {
			if !s.isWait() {
				continue
			}
			if k.play(slices.Delete(slices.Clone(program), i, i+1), 1).check(t, program, true) {
				broken++
			} else {
				still++
			}
		}
	})
	t.Logf("%d deleted waits made a race, %d did not", broken, still)
}
