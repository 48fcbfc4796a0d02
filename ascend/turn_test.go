package ascend

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each holder has the turn for less than the limit of a wait for one of them, and all of them together for longer.
func TestO1_a_thread_waits_for_one_holder_of_the_turn_after_another(t *testing.T) {
	const holders = 5
	d := &Driver{}
	require.True(t, d.turn.try())
	go func() {
		for range holders {
			time.Sleep(turnLimitNS * 3 / 10) // the limit is one of time
			d.turn.count.Add(2)              // given, and taken at once
		}
		d.turn.count.Add(1)
	}()
	require.True(t, d.follow(1), "it goes without the turn")
	require.False(t, d.turn.try())
	d.followed(0, true, nil)
	require.True(t, d.turn.try())
}

// A holder that does not go on may wait for the program, and so for who waits for the turn.
func TestO1_a_thread_does_not_wait_for_a_holder_that_does_not_go_on(t *testing.T) {
	d := &Driver{}
	require.True(t, d.turn.try())
	require.False(t, d.follow(1))
}
