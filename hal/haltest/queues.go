package haltest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// queuesOf says how many hardware queues a case needs that holds streams while others go on: on
// fewer, one of the others shares its queue with a held stream, and must wait.
var queuesOf = map[string]int{
	"A10_a_report_may_take_reports_itself":                          4,
	"A1_synchronizing_a_context_waits_for_its_own_streams":          4,
	"A2_a_wait_for_a_future_event_waits_for_the_next_record":        4,
	"A6_a_limit_that_does_not_pass_changes_nothing":                 4,
	"E3_a_record_on_another_stream_does_not_move_a_wait":            4,
	"E3_wait_uses_the_last_record_before_it":                        4,
	"H5_there_is_a_thread_for_the_next_function_below_the_limit":    8,
	"L2_closing_lets_pending_work_finish":                           4,
	"M6_a_copy_on_the_default_stream_is_in_its_order":               4,
	"S2_a_held_stream_holds_no_other":                               4,
	"S5_a_wait_on_the_default_stream_is_work_of_it":                 8,
	"S5_default_stream_waits_for_ordered_streams":                   4,
	"S5_ordered_streams_wait_for_the_default_stream":                8,
	"S5_synchronizing_the_default_stream_waits_for_ordered_streams": 4,
	"S6_a_stream_waits_for_another_ones_work_so_far":                4,
	"S9_a_host_blocking_stream_returns_when_the_work_is_done":       4,
}

// requireCases fails if a name is that of no case.
func requireCases(t *testing.T, all []testCase, names map[string]int) {
	t.Helper()
	for name := range names {
		require.True(t, slices.ContainsFunc(all, func(c testCase) bool { return c.name == name }), "%s is no case", name)
	}
}
