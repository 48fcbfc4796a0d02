// Package order finds accesses to the same bytes that nothing orders.
//
// A [Checker] handles every operation that listeners of package hal see, in their
// order, and keeps a vector clock for each stream and each host thread: up to which
// operation of every other one its next operation is ordered. An operation happens
// before another if the clock of the other covers it. Two accesses to the
// same bytes, at least one of them a write, of which neither happens before the
// other are reported. The result depends on the program's calls alone, not on
// the schedule: no operation needs to run.
//
// A [Session] runs a checker over the runtimes of a program and keeps what people ask
// about its reports.
//
// # What orders
//
//   - Work on one stream, and what one host thread does, in the order of the calls.
//
//   - An enqueued operation comes after everything that its calling thread's clock
//     covers.
//
//   - A wait binds to the version of the event at its call (E3), or to the work
//     enqueued so far on the other stream (S6). A wait for a Future event passes
//     by the first record after the latest reset (A2); operations behind a wait whose
//     record was not enqueued yet are held until it is.
//
//   - A wait for a value comes after the writes of streams that can have ended it:
//     after what all of those know that meet its condition and that no write known
//     to the stream has replaced. Where there is none yet, operations behind it are
//     held until there is one. What the host writes by itself orders nothing.
//
//   - The legacy default stream and the ordered streams of its device (S5). A wait on
//     that stream is work like any other, also one for a completed event.
//
//   - A synchronize of the host, and a query that the runtime made by itself.
//
//   - Memory that is allocated in stream order comes after the point where its
//     former owner freed it, since elsewhere it is not allocated again before (M7). What a
//     caching allocator waited for before it gave memory out again on the same stream
//     orders accesses to that memory only.
//
//   - What a host thread did before it released an object that orders threads, and what
//     another one does after it acquired that ([Checker.Order]), such as a lock or a queue
//     of Python. A release by a function on a stream comes after what the function does.
//
// The clock of a thread whose beginning was observed covers what was done before its start.
// That of any other thread that calls the runtime for the first time covers what those of
// all others cover by then, since one of them started it; while beginnings are observed,
// that of a thread which is older than the check covers nothing.
//
// # What does not order
//
// A query that returned true orders what follows it, but the program worked
// only because it did; and calls of several host threads come in some order
// without anything that the runtime could see. Pairs that only these order are
// reported in categories of their own ([ByQuery], [ByTiming]). A gate orders nothing:
// any thread may open it.
//
// # What is kept
//
// For each range, the accesses that no later one supersedes: the last writes and
// the last read of every stream. So every byte with an unordered pair is in some
// report, but not every such pair is. Accesses that the clocks of all host threads
// cover are forgotten, and the slots of closed streams in the clocks are used again.
package order
