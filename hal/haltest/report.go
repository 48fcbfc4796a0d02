package haltest

import (
	"github.com/stretchr/testify/require"

	"halstream/hal"
)

// Reports enqueues a burst of one report, and reports whether it grows.
func (k *Kit) reports(s *hal.Stream, q *hal.Queue, token uint64) (b *hal.Burst, grows bool) {
	k.T.Helper()
	b = new(hal.Burst)
	require.True(k, b.Add())
	grows, err := s.Reports(k.Me, q, token, b)
	require.NoError(k, err)
	return b, grows
}

// subscribed returns a stream and its queue for reports.
func (k *Kit) subscribed() (*hal.Stream, *hal.Queue) {
	k.T.Helper()
	s, q := k.Stream(ordinary), hal.NewReportQueue()
	require.NoError(k, s.Subscribe(k.Me, q))
	return s, q
}

var reportCases = []testCase{
	{"H6_reports_may_be_handed_over_as_one_burst", Contexts, func(k *Kit) {
		s, q := k.subscribed()
		b, grows := k.reports(s, q, 7)
		require.Equal(k, grows, b.Add(), "a burst that does not grow is sealed")
		k.Take(q, 7)
		k.Pending(s, "its reports have not ended")
		n := 0
		for b.Begin() {
			n++
		}
		added, _ := b.Counts()
		require.EqualValues(k, added, n)
		require.False(k, q.Unused())
		q.Done(k.Me, false, nil)
		k.Sync(s)
		require.NoError(k, s.Unsubscribe(k.Me, q))
		require.True(k, q.Unused(), "a burst counts as one report")
		_, err := s.Reports(k.Me, q, 8, new(hal.Burst))
		require.ErrorIs(k, err, hal.ErrNotSubscribed)
	}},
	{"A10_the_end_of_a_subscription_seals_the_burst", Contexts, func(k *Kit) {
		s, q := k.subscribed()
		b, _ := k.reports(s, q, 7)
		require.NoError(k, s.Unsubscribe(k.Me, q))
		require.False(k, b.Add(), "a report after the end of the subscription")
		require.False(k, q.Unused(), "the burst waits")
		k.Take(q, 7)
		for b.Begin() {
			require.False(k, q.Unused(), "the burst runs")
		}
		q.Done(k.Me, false, nil)
		k.Sync(s)
		require.True(k, q.Unused())
	}},
	{"A10_a_burst_of_which_the_rest_is_dropped_is_one_report_until_it_ends", Contexts | RealTime | Aborts, func(k *Kit) {
		s, q := k.subscribed()
		b, grows := k.reports(s, q, 7)
		k.Take(q, 7)
		require.True(k, b.Begin())
		require.Equal(k, grows, b.Add())
		require.NoError(k, s.Unsubscribe(k.Me, q))
		dropped, err := s.Abort(k.Me)
		require.NoError(k, err)
		require.False(k, b.Begin(), "a report that was dropped")
		if grows {
			require.Equal(k, 1, dropped)
			task, err := q.Next(k.Me, int64(Limit))
			require.NoError(k, err)
			require.Equal(k, hal.Task{Token: 7, Drop: true}, task)
		}
		require.False(k, q.Unused(), "the first report runs")
		q.Done(k.Me, false, nil)
		require.True(k, q.Unused())
		_, _ = s.Synchronize(k.Me, int64(Limit)) // its error is that of the abort
	}},
	{"H6_a_burst_of_reports_gives_way_inside_of_another_report", Contexts | FourQueues | RealTime, func(k *Kit) {
		outer, q := k.subscribed()
		require.NoError(k, outer.Report(k.Me, q, 1, true, hal.Accesses{}))
		k.Take(q, 1)
		first, second := k.Stream(ordinary), k.Stream(ordinary)
		for _, s := range []*hal.Stream{first, second} {
			require.NoError(k, s.Subscribe(k.Me, q))
		}
		k.reports(first, q, 2)
		k.Take(q, 2)
		k.reports(second, q, 3)
		k.Eventually(func() bool { return q.Waiting() == 1 }, "the other burst never came")
		require.EqualValues(k, 3, q.Yield(k.Me).Token)
		q.Done(k.Me, false, nil)
		k.Sync(second)
		k.Pending(first, "its burst was given back")
		k.Take(q, 2)
		q.Done(k.Me, false, nil)
		k.Sync(first)
		k.Pending(outer, "its report goes on")
		q.Done(k.Me, false, nil)
		k.Sync(outer)
	}},
}
