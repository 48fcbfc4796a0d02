package pybuild

import (
	"halstream/bindings/python"
	"halstream/hal"
)

// device returns a device of the runtime, which is opened if no call has done so.
func device(ordinal int64) (*hal.Device, error) {
	r, err := backend()
	if err != nil {
		return nil, err
	}
	d, err := r.Device(int(ordinal))
	return d, raise(err)
}

// DeviceCount returns the number of devices.
func DeviceCount() (n int64, err error) {
	return onRuntime(func(r *hal.Runtime) (int64, error) { return int64(r.Devices()), nil })
}

// DeviceName returns the hardware's name.
func DeviceName(ordinal int64) (name string, err error) {
	return onDevice(ordinal, func(d *hal.Device) (string, error) { return d.Name(), nil })
}

// DeviceUsed returns 1 once a stream of the device was made or asked for.
func DeviceUsed(ordinal int64) (used int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) { return truth(d.Used()), nil })
}

// DeviceGreatestPriority returns the priority of the most urgent streams.
func DeviceGreatestPriority(ordinal int64) (priority int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) { return int64(d.GreatestPriority()), nil })
}

// DeviceSync waits for all work enqueued on the device so far; 1 if it is done.
func DeviceSync(ordinal, limit int64) (done int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) {
		p, err := d.Point(caller())
		if err != nil {
			return 0, err
		}
		return outcome(d, await(p, limit))
	})
}

// DeviceCaptures returns 1 while a stream of the device takes part in a capture.
func DeviceCaptures(ordinal int64) (captures int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) { return truth(d.Captures()), nil })
}

// outcome is what a wait for work of a device answers, done being what await
// returned: the device may have been lost meanwhile. A handler of a signal that
// raised has the first word.
func outcome(d *hal.Device, done int64) (int64, error) {
	if err := d.Lost(); err != nil && done == 1 {
		return 0, raise(err)
	}
	return done, nil
}

// DeviceAbort drops the work of the device that has not started.
func DeviceAbort(ordinal int64) (n int64, err error) {
	return onDevice(ordinal, func(d *hal.Device) (int64, error) {
		dropped, err := d.Abort(caller())
		return int64(dropped), err
	})
}

// DeviceLosses returns the devices that are lost, a list of lossRecord. It may be called
// after Shutdown: what ran until then may have made a device lost.
func DeviceLosses() (text string, err error) {
	defer guard(&err)
	losses := []lossRecord{}
	if rt != nil {
		for i := range rt.Devices() {
			if d, _ := rt.Device(i); d.Lost() != nil {
				losses = append(losses, lossRecord{i, python.LossText(d.Lost()), d.UnreportedLoss() == nil})
			}
		}
	}
	return encode(losses), nil
}

// DeviceRecover makes a device work again that was lost to a function. It returns the
// error if the program does not know of it, else "".
func DeviceRecover(ordinal int64) (unreported string, err error) {
	return onDevice(ordinal, func(d *hal.Device) (string, error) {
		unreported, err := d.Recover(caller())
		return python.LossText(unreported), err
	})
}

// DeviceDescribe says which streams are pending and why.
func DeviceDescribe(ordinal int64) (text string, err error) {
	return onDevice(ordinal, func(d *hal.Device) (string, error) { return d.Describe(), nil })
}
