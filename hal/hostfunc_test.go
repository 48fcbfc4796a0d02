package hal_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"halstream/hal"
	"halstream/hal/driver"
)

// firstStream returns the first device of a runtime and a stream of it. The runtime is
// closed when the test ends.
func firstStream(t *testing.T, rt *hal.Runtime, me *hal.Thread) (*hal.Device, *hal.Stream) {
	t.Helper()
	t.Cleanup(rt.Close)
	dev, err := rt.Device(0)
	require.NoError(t, err)
	s, err := dev.NewStream(me, hal.StreamOptions{})
	require.NoError(t, err)
	return dev, s
}

// TestH3_every_call_with_a_thread_is_refused_inside_a_function calls each exported
// method that takes a *hal.Thread and returns an error, with the thread of a
// function that runs, so that a new method without the check fails the test.
func TestH3_every_call_with_a_thread_is_refused_inside_a_function(t *testing.T) {
	rt, err := hal.OpenBackend("host", 1)
	require.NoError(t, err)
	me, inside := hal.NewThread(), hal.NewThread()
	dev, s := firstStream(t, rt, me)
	e, err := rt.NewEvent(me, nil, hal.EventOptions{})
	require.NoError(t, err)
	ctx, err := dev.NewContext(me)
	require.NoError(t, err)
	block, err := dev.Alloc(me, 64)
	require.NoError(t, err)
	reports := hal.NewReportQueue()
	rt.Funcs.Start()
	require.NoError(t, s.HostFunc(me, 1))
	task, err := rt.Funcs.Next(inside, driver.Forever)
	require.NoError(t, err)
	require.EqualValues(t, 1, task.Token)

	thread, failure := reflect.TypeFor[*hal.Thread](), reflect.TypeFor[error]()
	arguments := map[reflect.Type]any{
		thread: inside, reflect.TypeFor[*hal.Device](): dev, reflect.TypeFor[*hal.Stream](): s,
		reflect.TypeFor[*hal.Event](): e, reflect.TypeFor[*hal.Context](): ctx, reflect.TypeFor[*hal.Queue](): reports,
		reflect.TypeFor[*hal.Block](): block,
	}
	tried := 0
	for _, object := range []any{rt, dev, s, e, ctx, rt.Funcs, reports, &hal.Module{}, inside} {
		value := reflect.ValueOf(object)
		for i := range value.NumMethod() {
			name, m := value.Type().Method(i).Name, value.Method(i).Type()
			_, isThread := object.(*hal.Thread)
			takes := isThread && name == "SetContext"
			var args []reflect.Value
			for a := range m.NumIn() {
				takes = takes || m.In(a) == thread
				if known, ok := arguments[m.In(a)]; ok {
					args = append(args, reflect.ValueOf(known))
				} else {
					args = append(args, reflect.Zero(m.In(a)))
				}
			}
			n := m.NumOut()
			if !takes || n == 0 || m.Out(n-1) != failure {
				continue
			}
			tried++
			results := value.Method(i).Call(args)
			err, _ := results[n-1].Interface().(error)
			require.ErrorIs(t, err, hal.ErrInHostFunction, "%T.%s", object, name)
		}
	}
	require.Greater(t, tried, 50)
	rt.Funcs.Done(inside, false, nil)
	done, err := s.Synchronize(me, driver.Forever)
	require.NoError(t, err)
	require.True(t, done)
}
