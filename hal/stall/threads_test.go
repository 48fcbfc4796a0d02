package stall

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// writeTask writes what the system tells of a thread.
func writeTask(t *testing.T, root string, id int, syscall, blocked string) {
	dir := filepath.Join(root, strconv.Itoa(id))
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, text := range map[string]string{
		"syscall": syscall, "comm": "worker\n", "status": "Name:\tworker\nSigBlk:\t" + blocked + "\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

func TestActing_leavesOutWhoOnlyAnotherThreadCanWake(t *testing.T) {
	root := t.TempDir()
	const none, all = "0000000000000000", "fffffffe7ffbfeff"
	writeTask(t, root, 10, futexCall+" 0x7f00 0x189 0x0 0x0 0x0 0xffffffff 0x7f 0x7f", none)
	writeTask(t, root, 11, futexCall+" 0x7f00 0x80 0x0 0x0 0x0 0x0 0x7f 0x7f", all)
	writeTask(t, root, 12, futexCall+" 0x7f00 0x189 0x0 0x7fff 0x0 0xffffffff 0x7f 0x7f", none)
	writeTask(t, root, 13, futexCall+" 0x7f00 0x189 0x0 0x7fff 0x0 0xffffffff 0x7f 0x7f", all)
	writeTask(t, root, 14, futexCall+" 0x7f00 0x109 0x0 0x0 0x0 0xffffffff 0x7f 0x7f", none)
	writeTask(t, root, 15, "230 0x1 0x1 0x7f00 0x0 0x0 0x7f 0x7f 0x7f", none)
	writeTask(t, root, 16, "running\n", all)
	writeTask(t, root, 17, "running\n", none)
	found := acting(root, func(id int) bool { return id == 17 }, nil)
	require.Equal(t, []Thread{
		{12, "worker", false}, // a limit may pass
		{13, "worker", true},
		{14, "worker", false}, // another process may have the lock, too
		{15, "worker", false}, // it sleeps for a while
		{16, "worker", false},
	}, found)
}

func TestActing_countsAThreadOfWhichNothingIsKnown(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "20"), 0o755))
	require.Equal(t, []Thread{{ID: 20}}, acting(root, func(int) bool { return false }, nil))
}

func TestActing_withoutProcFindsNobody(t *testing.T) {
	require.Empty(t, acting(filepath.Join(t.TempDir(), "none"), func(int) bool { return false }, nil))
}

func TestActing_knowsAThreadByItsHandle(t *testing.T) {
	root := t.TempDir()
	sleeping := func(sp string) string { return "230 0x1 0x1 0x7f00 0x0 0x0 0x7f " + sp + " 0x7f" }
	writeTask(t, root, 10, sleeping("0x1f00"), "0")
	writeTask(t, root, 11, sleeping("0x2f00"), "0")
	writeTask(t, root, 12, sleeping("0x3f00"), "0")
	found := acting(root, func(int) bool { return false }, []uint64{0x3000, 0x100})
	require.Equal(t, []Thread{{10, "worker", false}, {12, "worker", false}}, found)
}

func TestW2_a_handle_that_is_not_on_a_known_stack_names_no_other_thread(t *testing.T) {
	root := t.TempDir()
	writeTask(t, root, 10, "230 0x1 0x1 0x7f00 0x0 0x0 0x7f 0x1f00 0x7f", "0")
	writeTask(t, root, 11, "running", "0") // its stack is above the other one, and not known
	caller := func(id int) bool { return id == 11 }
	require.Equal(t, []Thread{{10, "worker", false}}, acting(root, caller, []uint64{0x3000}, 0x3000))
}

func TestW4_a_thread_that_waits_for_a_lock_or_a_signal_never_goes_on_by_itself(t *testing.T) {
	root := t.TempDir()
	for id, c := range []struct{ syscall, want string }{
		{futexCall + " 0x7f00 0x189 0x0 0x0 0x0 0xffffffff 0x7f 0x7f", "a lock"},
		{futexCall + " 0x7f00 0x189 0x0 0x7fff 0x0 0xffffffff 0x7f 0x7f", ""}, // with a limit
		{futexCall + " 0x7f00 0x109 0x0 0x0 0x0 0xffffffff 0x7f 0x7f", ""},    // another process may have it
		{signalCalls[0] + " 0x0 0x0 0x0 0x0 0x0 0x0 0x7f 0x7f", "a signal"},
		{"0 0x5 0x7f00 0x1 0x0 0x0 0x0 0x7f 0x7f", ""}, // it reads
		{"running", ""},
	} {
		writeTask(t, root, id, c.syscall+"\n", "0")
		require.Equal(t, c.want, neverEnds(root, id), c.syscall)
	}
	require.Empty(t, neverEnds(root, 99), "it has ended")
}
