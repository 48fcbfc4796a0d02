package cuda

// awaitsHostAt notes that the operation at a place waits for something that the program
// may have to do, and makes Reached exact for it.
func (s *Stream) awaitsHostAt(place uint64) {
	for {
		before := s.hostWait.Load()
		if before >= place {
			return
		}
		if s.hostWait.CompareAndSwap(before, place) {
			s.Keep()
			return
		}
	}
}

// AwaitsHost implements driver.VendorDriver. A wait for a value that another stream
// writes counts, too: the driver does not say what ends a wait.
func (d *Driver) AwaitsHost() bool {
	if d.reports.Load() > 0 || d.poller.anyGate() {
		return true
	}
	for _, dev := range d.devices {
		if !dev.opened() {
			continue
		}
		for _, s := range dev.streams.all() {
			place := s.hostWait.Load()
			if s.Reached(place) {
				continue
			}
			if s.refresh(); !s.Reached(place) {
				return true
			}
		}
	}
	return false
}
