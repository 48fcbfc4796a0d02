package libcuda

import (
	"sync"

	"halstream/hal"
)

const lastCaptureMode = 2

var captureFunctions = []function{
	{name: "cuStreamBeginCapture", version: 10000, twin: ptsz, call: onStream(0, func(c *caller, s *stream, _ *args) error {
		return s.BeginCapture(c.t, hal.GlobalMode)
	})},
	{name: "cuStreamBeginCapture_v2", version: 10010, twin: ptsz, call: onStream(0, func(c *caller, s *stream, a *args) error {
		if a.u32(1) > lastCaptureMode {
			return refuse(invalidValue, "there is no mode %d of a capture", a.u32(1))
		}
		return s.BeginCapture(c.t, hal.CaptureMode(a.u32(1)))
	})},
	{name: "cuStreamBeginCaptureToGraph", version: 12030, twin: ptsz, call: unsupported(
		"a capture makes a graph of its own; add that as a child")},
	{name: "cuStreamEndCapture", version: 10000, twin: ptsz, call: onStream(0, func(c *caller, s *stream, a *args) error {
		if err := a.need(1); err != nil {
			return err
		}
		put(a, 1, uintptr(0))
		state, err := s.IsCapturing(c.t)
		if err == nil && state == hal.NotCapturing {
			err = refuse(illegalState, "the stream does not capture")
		}
		if err != nil {
			return err
		}
		capture := s.CaptureID()
		made, err := s.EndCapture(c.t)
		var asked *graph
		if s.CaptureID() != capture { // it has ended, with or without an error
			asked = removeCapture(capture)
		}
		switch {
		case err != nil && asked != nil:
			removeHandle(asked.handle)
			asked.objects.release()
		case err != nil:
		case asked != nil:
			asked.Graph = made
			put(a, 1, asked.handle)
		default:
			put(a, 1, newGraph(made, s.x).handle)
		}
		return err
	})},
	{name: "cuStreamIsCapturing", version: 10000, twin: ptsz, call: onStream(0, func(c *caller, s *stream, a *args) error {
		state, err := s.IsCapturing(c.t)
		if err == nil {
			put(a, 1, int32(state))
			err = a.need(1)
		}
		return err
	})},
	{name: "cuStreamGetCaptureInfo", version: 10010, twin: ptsz, call: captureInfo(nowhere)},
	{name: "cuStreamGetCaptureInfo_v2", version: 11030, twin: ptsz, call: captureInfo(5)},
	{name: "cuStreamGetCaptureInfo_v3", version: 12030, twin: ptsz, call: captureInfo(6)},
	{name: "cuStreamUpdateCaptureDependencies", version: 11030, twin: ptsz, call: unsupported(noUpdate)},
	{name: "cuStreamUpdateCaptureDependencies_v2", version: 12030, twin: ptsz, call: unsupported(noUpdate)},
	{name: "cuThreadExchangeStreamCaptureMode", version: 10010, call: func(c *caller, a *args) error {
		if err := a.need(0); err != nil {
			return err
		}
		mode := in[uint32](a, 0)
		if *mode > lastCaptureMode {
			return refuse(invalidValue, "there is no mode %d of a capture", *mode)
		}
		before, err := c.t.ExchangeCaptureMode(hal.CaptureMode(*mode))
		if err == nil {
			*mode = uint32(before)
		}
		return err
	}},
}

const noUpdate = "a capture keeps the order of its calls; let streams wait for events instead"

// activeCaptures are the graphs of captures that have not ended, as far as the program has asked for them, by the numbers of the
// captures: it can let them keep its objects.
var activeCaptures struct {
	sync.Mutex
	by map[uint64]*graph
}

// graphOfCapture returns the graph that a capture will have made.
func graphOfCapture(capture uint64, x *context) *graph {
	activeCaptures.Lock()
	defer activeCaptures.Unlock()
	g := activeCaptures.by[capture]
	if g == nil {
		if activeCaptures.by == nil {
			activeCaptures.by = map[uint64]*graph{}
		}
		g = newGraph(nil, x)
		activeCaptures.by[capture] = g
	}
	return g
}

// removeCapture forgets that a capture is under way, and returns its graph, nil if nobody has asked for it.
func removeCapture(capture uint64) *graph {
	activeCaptures.Lock()
	defer activeCaptures.Unlock()
	g := activeCaptures.by[capture]
	delete(activeCaptures.by, capture)
	return g
}

// captureInfo returns a function that tells of a capture: its state, its number and its graph, and where count is a place, its
// nodes and what there is to know of their edges. The nodes of a capture that has not ended have no handles.
func captureInfo(count int) func(c *caller, a *args) error {
	return onStream(0, func(c *caller, s *stream, a *args) error {
		state, err := s.IsCapturing(c.t)
		if err == nil {
			err = a.need(1)
		}
		if err != nil {
			return err
		}
		put(a, 1, int32(state))
		put(a, 2, s.CaptureID())
		if count > 0 {
			put(a, 3, uintptr(0))
			if capture := s.CaptureID(); a[3] != 0 && state == hal.Capturing && capture != 0 {
				put(a, 3, graphOfCapture(capture, s.x).handle)
			}
			for i := 4; i <= count; i++ {
				put(a, i, uintptr(0))
			}
		}
		return nil
	})
}
