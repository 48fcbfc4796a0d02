package driver

// Notice is called when a point is reached.
type Notice interface {
	// Reached is called once, on any thread, with no lock of the backend held. It neither
	// blocks nor calls the runtime.
	Reached()
}

// Notifying is implemented by points whose backend can say when they are reached
// while no thread waits for them.
type Notifying interface {
	// Notify calls n.Reached when the point is reached, also if it is reached already.
	// After cancel has returned a call that had not begun does not come.
	Notify(n Notice) (cancel func())
}
