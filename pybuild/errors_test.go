package pybuild

import (
	gocontext "context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"halstream/bindings"
	"halstream/bindings/records"
	"halstream/hal/driver"
)

func TestErrorsHaveTheFormThatPythonReads(t *testing.T) {
	id := insert("x")
	remove(id)
	closed := unknown(id, "query", "stream")
	text, found := strings.CutPrefix(closed.Error(), records.ErrorPrefix)
	require.True(t, found)
	var record errorRecord
	require.NoError(t, json.Unmarshal([]byte(text), &record))
	require.Equal(t, errorRecord{Kind: "closed", Operation: "query", Text: "the stream is closed; create a new one"}, record)
	require.Contains(t, unknown(12345, "query", "stream").Error(), "invalid_handle")
	require.Same(t, closed, raise(closed))
}

func TestAStreamThroughTheFlatFunctions(t *testing.T) {
	s, err := StreamNew(0, -99, bindings.StreamNonBlocking, 0)
	require.NoError(t, err)
	e, err := EventNew(-1, bindings.EventTiming)
	require.NoError(t, err)
	_, err = StreamNop(s)
	require.NoError(t, err)
	_, err = StreamRecord(s, e)
	require.NoError(t, err)
	done, err := StreamSync(s, 10_000_000_000)
	require.NoError(t, err)
	require.EqualValues(t, 1, done)
	priority, err := StreamPriority(s)
	require.NoError(t, err)
	require.EqualValues(t, -7, priority)
	_, err = StreamRecord(e, s)
	require.ErrorContains(t, err, "not the handle of a live stream")
	for _, id := range []int64{s, e} {
		_, err = Close(id)
		require.NoError(t, err)
	}
	_, err = StreamQuery(s)
	require.ErrorContains(t, err, "closed")
}

func TestAPanicWithAnErrorOfTheRuntimeIsTheCallsError(t *testing.T) {
	f := func() (err error) {
		defer guard(&err)
		panic(driver.Errorf(driver.OutOfMemory, "create", "no id is left"))
	}
	require.ErrorContains(t, f(), "out_of_memory")
}

// A defect may panic with a lock held. Were it recovered, the next call that
// needs the lock would block for ever.
func TestAPanicThatIsADefectEndsTheProcessWithItsText(t *testing.T) {
	if os.Getenv("HALSTREAM_TEST_PANIC") == "1" {
		var lock sync.Mutex
		call := func() (err error) {
			defer guard(&err)
			unlocked(func() { lock.Lock(); panic("the index is wrong") })
			return nil
		}
		_ = call()
		lock.Lock()
	}
	ctx, cancel := gocontext.WithTimeout(gocontext.Background(), 20*time.Second)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), "HALSTREAM_TEST_PANIC=1")
	out, err := child.CombinedOutput()
	require.NoError(t, ctx.Err(), "the process hangs:\n%s", out)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Contains(t, string(out), "panic: the index is wrong")
	require.Contains(t, string(out), "a defect of the runtime")
	require.NotContains(t, string(out), "test timed out")
}
