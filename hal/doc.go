// Package hal is the stream, event and context runtime under every dialect.
//
// A stream is ordered work on a device, events are recorded on it. All rules and
// all validation are here. Backends (package driver) run the work and trust their
// arguments; the Python package only maps names. A host thread is an explicit
// token and a function of the program a number: nothing here depends on Python.
//
// The rules are the contract below. Each clause has a conformance case in
// hal/haltest and a test in tests/conformance whose names begin with its id.
//
// # Stream
//
//   - S1: Work on one stream runs in the order of the calls that enqueued it.
//   - S2: Streams have no order between them without an event, a wait or the
//     default-stream rule; a blocked stream, a closed gate or a function that waits
//     delays no other stream.
//   - S3: Query is false while an operation is pending or runs, true when all
//     work is done, and never blocks.
//   - S4: Synchronize waits for the work enqueued before the call. The first
//     error of a stream stays until a synchronize or query of that stream, or a
//     copy on it that waits, reports it, once; other streams do not see it.
//   - S5: Work on the legacy default stream waits for all earlier work of the
//     device's ordered streams, and their later work waits for it. A wait on it
//     for a recorded event or another stream is such work, also where that is complete.
//     Non-blocking streams and other devices take no part. Each thread has its own
//     per-thread default stream, which is an ordered stream.
//   - S6: Waiting for a stream waits as for an event that is recorded on it: for the
//     work enqueued on it so far, and what S5 puts before that point, not for what
//     comes later; a stream that waits for itself does nothing.
//   - S7: A lower number is more urgent. Priorities outside the range are
//     clamped. Among ready work the most urgent stream goes first; hardware may
//     treat that as a hint.
//   - S8: Every wait of the host takes a limit. When it passes first nothing is
//     cancelled, and the stream can be waited for again.
//   - S9: A stream that blocks the host returns from each enqueue when the work
//     is done, and is ordered with the legacy default stream.
//
// # Event
//
//   - E1: An event that was never recorded is complete: query is true,
//     synchronize returns, waiting for it does nothing.
//   - E2: A stream that waits for an event does not block the host; it may be
//     on another device.
//   - E3: A wait binds to the latest record at its call; recording the event again does
//     not change it.
//   - E4: Recording again overwrites: query and synchronize are about the latest
//     record.
//   - E5: Elapsed time is in milliseconds from start to end. It fails when an
//     event was never recorded, has no timing, is pending, or is of another
//     device.
//   - E6: Any number of threads may synchronize one event.
//   - E7: An event is recorded on streams of one device only; one made without
//     a device takes that of its first record.
//   - E8: Waiting for an event on the stream that recorded it does nothing.
//   - E9: In a vendor's library an event has one handle, which stands for its
//     latest record there. A record that another library makes with it counts here.
//   - E10: Other processes of the machine can have an event by a handle. It stands for the
//     record that any of them has made last, for streams, queries and waits of the host. Up
//     to 511 records of it may be pending. A wait for one whose process has ended fails. A
//     handle opens nothing in the process that made it, nor once the event was closed there.
//
// # Host function
//
//   - H1: A function on a stream runs exactly once, in stream order, on another
//     thread than the caller's.
//   - H2: A function that fails is counted on its stream and later work runs; a
//     checked one gives its error to the stream (S4). An error that no call can
//     return, because the stream has an earlier one or is closed, is handed back
//     to the threads that run functions, once.
//   - H3: A function on a stream may not call the runtime, but for opening a
//     gate: the call fails at once and names the rule.
//   - H4: Functions that are pending when their stream is closed still run.
//   - H5: More functions than threads wait, the most urgent first; below the
//     limit there is always a thread for the next one.
//   - H6: Functions that follow each other on a stream are operations of their own:
//     what is enqueued between two of them comes between them; each counts as
//     pending, is dropped by an abort before it has begun, and fails for itself.
//     Where no thread is free, functions of more urgent streams come before the
//     next one.
//   - H7: A function that does not end can be abandoned: its stream goes on, with
//     an error if it has none, and its late end changes nothing.
//
// # Lifetime
//
//   - L1: Closing twice does nothing; a default stream cannot be closed.
//   - L2: Closing a stream or event with work pending lets the work finish.
//   - L3: Using a closed object fails and says so, also where another thread closes
//     it during the call.
//   - L4: An event outlives the stream it was recorded on.
//   - L5: Nothing is left of streams and events that were closed.
//   - L6: Closing the runtime drops work that has not started and waits for copies,
//     fills and native functions that run. Blocked threads return, and streams of
//     a closed runtime refuse work.
//
// # Device
//
//   - D1: Ordinals count from 0; any other number fails.
//   - D2: Each thread has its own current device, the first one at the start.
//   - D3: A backend that cannot be used says why; a refused choice changes
//     nothing. After a change every task and thread starts at the defaults.
//   - D4: Objects of two devices do not mix, except that a stream may wait for
//     events and streams of another device. Objects of two runtimes never mix.
//   - D5: Synchronizing a device waits for the work enqueued on its streams
//     before the call, and for no other device.
//   - D6: A device that fails for good stays lost: waits for it end, each call
//     fails at once with the first cause, and functions that were pending are
//     dropped. Other devices keep working.
//   - D7: An error of a native function that stands for a kernel makes its device lost
//     (D6), as an assertion in a kernel does: each call that enqueues, queries or waits
//     names the function, its error and the line that enqueued it. A device that has
//     waited for a lost one is lost as well. Closing and freeing succeed. Until a call
//     has reported the error, listeners see native functions, records, waits and
//     allocations on the lost device, which do not run. A process that ends before the
//     error was reported says so, and ends with 1 instead of 0.
//   - D8: A device that was lost in this way can recover, with its streams, events and
//     memory. A schedule begins with devices that work.
//
// # Observation
//
//   - O1: Listeners see every operation that is enqueued, with its stream,
//     thread and event version, in the order of each stream and of each event,
//     whichever threads enqueued it; none means no cost.
//   - O2: A stream can say what is pending on it and what its head waits for.
//   - O3: A gate blocks its stream until it is opened; opening is allowed anywhere,
//     again does nothing.
//   - O5: Listeners see what the host does: waits that ended, queries that answered
//     true, accesses to memory, objects created and closed; a free before its memory is
//     allocated again.
//   - O6: A backend that has the ability reports when each operation began and
//     ended, by the clock of the events' times.
//   - O7: A log has the nodes of each launch of a graph behind it, with their accesses, the
//     lines that made them and the branches that they are on, and a backend that reports when
//     operations ran reports it of each node that a launch runs once.
//   - O4: Events shared between processes can be made, without timing; sharing
//     them is not supported yet and says so.
//
// # Contexts and event kinds of Ascend
//
//   - A1: A context has a default stream without implicit order and is current
//     per thread; its streams take work only where it is current.
//   - A2: A wait for a Future event waits for the next record, also one enqueued
//     later; the event stays set until a reset.
//   - A3: A wait for a Recorded event before its first record fails; so does
//     any wait for an event made not waitable.
//   - A4: Reset clears a Future event in stream order; other kinds refuse it.
//   - A5: Future and Recorded events answer pending before the first record,
//     and count the waits that have not been passed.
//   - A6: A wait with a limit lets the stream go on when it passes, with an
//     error for the next synchronize. The limit begins when everything before
//     the wait on its stream is done. The event may be closed meanwhile.
//   - A7: A recorded event made with timing has a timestamp once it is done.
//   - A8: Abort drops what has not started; a blocked synchronize fails, and
//     the stream can be used again.
//   - A9: The primary context of a device is shared by counting; the last
//     release ends it and its streams.
//   - A10: Reports of a subscribed stream go to its queue, whose functions may
//     call the runtime; a stream without one refuses them. Functions that are no
//     reports run on the runtime's threads, subscribed or not. A queue is in
//     use until no stream is subscribed to it and each of its reports has ended
//     or was dropped.
//
// # Memory
//
//   - M1: Device memory is aligned to 256 bytes and lies in a range of addresses
//     of its device. When there is no room the error names the bytes asked for
//     and the bytes free.
//   - M2: Freed memory cannot be used any more. Freeing it again is an error, and
//     so is freeing an address inside a block or memory that the runtime did not
//     allocate. Pending work that uses the memory completes first.
//   - M3: A copy runs in stream order. Each range must lie in one live block, or
//     be memory of the program of which every page can be read (a source) or
//     written (a target); source and target do not overlap.
//   - M4: A pinned or device source is read when the stream reaches the copy.
//   - M5: Of a pageable source up to 64 KiB are taken within the call; a larger
//     copy from pageable memory, every copy to it, and every copy within host memory,
//     pinned or not, returns when it is done.
//   - M6: A blocking copy is an operation of the legacy default stream.
//   - M7: Stream-ordered memory may be used by work enqueued after it on its stream.
//     What was freed on a stream can be allocated again there at once, and elsewhere
//     once the stream has reached the free.
//   - M8: A fill sets elements of 1, 2 or 4 bytes of device or pinned memory.
//   - M9: A copy of rows moves nothing between the rows. Where a vendor's library takes
//     only the first ones, they keep the memory in use, and the stream fails.
//   - M10: Pinned memory that a pending operation works on cannot be freed or
//     unregistered: the error names the operation. Registering memory twice is
//     an error.
//   - M11: Listeners see the bytes that each operation reads and writes.
//   - M12: A native function runs in stream order, on an engine, once.
//   - M13: Copies cross devices.
//   - M14: The program can declare what the host itself reads and writes; a source
//     that a copy stages within the call is read by the host.
//   - M15: A block counts as allocated until it is freed or its owner drops it,
//     whatever work is pending on it, as active until no pending work uses it, and
//     as reserved until its memory is back at the device.
//     The figures of a device count all of its blocks, and the segments of its pool.
//   - M16: An allocation that could have memory which was freed and is still in use
//     waits for it before it fails; so does emptying a pool. While a stream waits
//     for the host, whose thread may be the one that allocates, it waits for 2
//     seconds at most, and the error says so.
//   - M17: A block that is freed waits for what is enqueued by then on the streams
//     that were recorded for it, also where they were closed since.
//   - M18: A pool divides its memory and merges neighbours that are free. Of live
//     blocks no two share a byte. Sizes that grow reserve no more than is in use at
//     one time, and a few times the largest while the work on them is pending.
//   - M19: A stream writes 64 bits (on the host device also 32) of device or pinned memory, and waits until they
//     are at least a value (by the sign of the difference), equal to it, or have a
//     bit that is set in both or in neither. They are checked when the stream
//     reaches the wait, and again after every change, including changes by the host.
//     A backend may have device memory that cannot hold values, and refuses them there;
//     a block of at most 4096 bytes that is allocated without a stream can.
//   - M20: A tensor of another library is used as it is described. A description that
//     cannot be true is refused and the wrong field named; so is a tensor on a device
//     whose memory the backend cannot access.
//   - M21: Memory that another library shares is registered until its last share
//     ends, and longer if the program registered it. The program unregisters only
//     what it registered itself; then the memory stays registered until the last
//     share ends. A range that overlaps a block without lying in it is refused.
//   - M22: Memory of a caching allocator that is released goes back to its stream at
//     once where the program is checked, under a sanitizer or a deterministic schedule;
//     else it waits for the work of other streams that the runtime knows as well.
//     Tracked memory always waits. Recorded streams are waited for in every case (M17).
//   - M23: A caching allocator takes memory from the device in segments of 2 MiB for
//     blocks of up to 1 MiB, of 20 MiB for those below 10 MiB, and for others of as
//     many times 2 MiB as they need. Small blocks and large ones share no segment.
//   - M25: What it is given back stays with the stream that it was allocated on, so that
//     no other stream is ordered behind that one by chance, until the whole segment goes
//     back to the device or, once the stream is closed, to another stream as a whole.
//   - M24: A free that by its contract waits for nothing, such as aclrtFree, is an access of
//     the host to the memory: work on it that the host has not waited for is reported.
//   - M26: Other processes of the machine can work on memory of a device by a handle, as
//     of the device of that number there: what one writes the others see. It can be
//     shared when no pending work uses it or a neighbour on its pages. A process opens
//     no memory of its own. What is opened stays until it was closed as often and
//     pending work on it is done; a handle of a process that has ended opens nothing.
//
// # Kernel
//
//   - K1: A kernel runs in stream order on its device; its arguments are taken at
//     the call.
//   - K2: Loading a module with errors fails with the compiler's text; a
//     launch that cannot run, or whose arguments are not those that its
//     program declares, fails at the call.
//   - K3: The host device executes the PTX of a kernel for every thread of it, with no access
//     to other memory than what is allocated when the launch is enqueued. An access
//     elsewhere, a trap, a failed assertion and a kernel that goes on beyond
//     HALSTREAM_KERNEL_LIMIT make the device lost (D7), with the instruction and its thread. What a
//     kernel accesses is known to the byte once it has run (V45). The device says that its compute
//     capability is 8.0, and the limits of its launches.
//   - K4: A module has variables of its own: two that were loaded from one program share
//     none. One that is asked for is device memory, for copies and for other kernels,
//     until its module is closed, which waits for the work that is pending on it.
//   - K5: Where a listener takes what kernels hand in, as the sanitizer does, the host device looks
//     for mistakes that do not end a kernel: races and reads of words that nobody wrote in shared
//     memory, and barriers that the threads of a block meet at different places. Each is a finding
//     with the kernel, its line, the block and the thread, in the words of compute-sanitizer. So is, with
//     the kernel and its bytes, a read of device memory that was allocated since the check began and
//     that nothing called before may have written, nor the kernel itself.
//
// # Schedule
//
//   - X1: Under a deterministic schedule the device makes progress only at calls of the
//     runtime and while the host is blocked in one, one operation at a time, functions
//     included: a program with one thread does the same each time.
//   - X2: Each schedule chooses among ready operations as its documentation says.
//   - X3: Every schedule is fair: what the host is blocked for runs, and after 64
//     queries in a row that were answered "pending" what they ask for runs.
//   - X4: Time is virtual: each operation has a cost, and nothing sleeps.
//   - X5: A function that waits for the host does not block it, and where the program
//     waits for the device outside the runtime, the device goes on.
//   - X7: Under a deterministic schedule memory is overwritten when it is allocated:
//     what an earlier run left there cannot hide that this one reads too early.
//   - X21: A host device on real threads runs operations in the order of the calls while that
//     is asked for, and keeps no log of them. It first waits a while for pending work; where
//     some stays, and under a schedule, nothing changes.
//   - X6: A schedule begins with no work pending; a text that names no schedule is
//     refused. Other threads may call while the schedule changes. An exception that ends the
//     block of a schedule is raised, also where the block has left work or a capture.
//
// # All orders (Python)
//
//   - X8: A proof runs each class of equivalent orders once: two orders are
//     equivalent if all conflicting operations that nothing orders come in the same
//     order, and a function whose accesses are not declared conflicts with every
//     other access and function.
//
//   - X10: A schedule chooses among the nodes of a launch that can run as it does among
//     streams, and a schedule's text repeats the choice: the numbers of a launch's branches
//     do not depend on when it begins. A proof counts the orders of a graph's nodes. Texts
//     name the nodes by their numbers and the stream of the launch.
//
// # Host threads (Python)
//
//   - X9: Under a schedule that controls host threads, the threads that a program starts run
//     one at a time, and the next one is chosen at locks and whatever waits by them, at starts
//     and joins of threads, at sleeps, and at calls of the runtime: one token, one execution.
//     Threads that all wait for each other are reported; one that waits elsewhere loses its
//     turn, and the run and its token count as not wholly controlled.
//
// # Campaigns (Python)
//
//   - X20: The parts of a campaign run the schedules of one exploration, each counted
//     once: what a lost worker has not answered is run again, and an answer to a part
//     that is counted already changes nothing, also after a campaign was resumed.
//
// # Accesses
//
//   - V1: Operations on the same bytes, one of which writes, that nothing orders
//     are reported in whatever order they ran; those that are ordered never are.
//   - V2: Pairs that only a query's answer or the timing of host threads orders
//     are reported in categories of their own.
//   - V3: A pinned source that changes between the enqueue of a copy and the copy
//     is reported, unless an operation that is ordered before changed it.
//   - V42: A pinned source that changes after its copy ran, before a host thread comes after
//     the copy, is reported at the host's next wait, or at the end of the check, unless it was
//     freed, or an operation or a declared access writes there, or may write anywhere.
//   - V4: Under a deterministic schedule of the host device, bytes of device memory, and
//     of what a function was given or can reach, that changed while it ran count as
//     written by it, whoever wrote them for it, and are marked as observed. Above 8 MiB
//     the largest blocks are left out, and that is counted.
//   - V23: Where memory of host devices and pinned memory is watched by its pages, the
//     first access to a page since it was closed is seen, read or write, by whatever code
//     or system call; a later write to a page that was only read is seen, too. Of each the
//     first byte counts, and of a write by the only operation that runs under a
//     deterministic schedule all bytes of the page that changed. Pages are closed when an
//     operation begins or ends. The runtime's own copies and fills are not seen. A function
//     waits before it begins until no other runs, for 10 ms from each end of another on; if
//     it then runs beside others, these are counted, since some accesses may not be seen;
//     so are blocks that share a page with another one, and blocks that a pool allocates
//     from memory that it had before, whose pages are not watched.
//   - V24: What a thread touches while it runs a function counts as an access of that
//     function; what it touches otherwise, as one of the host between its calls of the
//     runtime, or, of Python's main thread, where that has looked for signals before the
//     next call. A thread that the runtime does not know belongs to the only function that
//     runs; if none or several do, what it touches is counted and not checked.
//   - V25: Where the system or the backend cannot watch pages, asking for it fails with what
//     is then not seen. A forked child has the memory as a copy of its own, and no access
//     waits in it, nor after the watch has ended.
//   - V26: Where tests of one process are checked one after another, what a test has
//     accessed and the host has not waited for counts in the next one, too: an access there
//     that nothing orders behind it is reported in that test.
//   - V27: A launch of an executable graph comes behind the work of its stream and before
//     what follows there, as one operation. It comes after the launch of the same executable before it, on whatever
//     stream; launches of two executables of one graph have no order of their own.
//   - V28: Nodes of a captured graph that touch the same bytes, one of them to write, and
//     between which the graph has no path are reported when the capture ends, with the
//     lines that made them. With work outside of the graph only launches are compared (V44).
//   - V43: The nodes of a graph, those of graphs in it included, are also compared with each
//     other when an executable is made of it or updated, and at the first launch of one that
//     was made before the check; each pair is reported once. Nodes of a body have the order of
//     its node towards nodes outside; those of two bodies of one node, of which one runs, and
//     of two iterations of one are not compared. The node itself reads its condition. Two nodes
//     are reported in the order in which the graph got them, with the wait in the capture or
//     the edge that would order them.
//   - V44: Between a launch and other work each node counts for itself, those of all bodies
//     included, whichever of them run: a report names the
//     node, with the line that made it, and the call that launched it. So do those about
//     memory that is freed, or a pinned source that changes, under a launch, and about what a
//     function of a graph was observed to write, also towards other nodes of its launch. That
//     the host sets the value of a condition is such an access. What
//     waits for an event that a node records comes after no more than the nodes before the
//     record; what a node waits for by an event comes before the nodes behind that.
//   - V45: An operation may declare an upper bound of what it accesses, and hand in the rest
//     when it runs: a native function, also as a node of a launch. It is compared with
//     others when it has ended, at the place that its enqueue gave it, so that the reports are
//     the same whenever it runs. One that hands in nothing, or has not run when
//     the check ends, counts as accessing all that it declared; one that is dropped, nothing.
//     Nodes that hand in are compared with each other in each launch.
//   - V7: What a host thread does after it acquired an object of the program's language
//     that orders threads (a lock, an event, a queue, a future, the end of a thread) comes
//     after what was done before its release, also by a function on a stream. A thread
//     comes after what was done before its start, and after nothing else.
//   - V8: What a copy or a fill without the suffix Async orders for the host is what the
//     vendor documents for it, whatever the backend does: copies to host memory, and from
//     pinned memory to a device, order the copy; one from pageable memory to a device orders
//     what was enqueued before it; one within devices orders nothing. A fill orders itself
//     where the host can work on the target: pinned or managed memory.
//   - V9: Of calls with the suffix Async, copies within host memory order themselves for the
//     host, pinned memory or not; one from pageable memory orders that its source was read,
//     after the copies to it before on its stream; all others, also copies to pageable memory,
//     and all fills, order nothing. CANN's copies from and to pageable memory order themselves.
//   - V10: A change that is to order two operations was tried on the recorded run: with what
//     it adds at each execution of its statement they are ordered, and no operation or call
//     waits for what comes only behind it. What opens a gate, or writes a value from the
//     host, counts as late as the waits of the run allow. A run of more than 131,072
//     operations, or of more than 524,288 byte ranges, is not recorded; a change there is
//     not tried. The record takes 48 bytes for an operation and 16 for a range. Each name in
//     the change was seen to stand for its object at the place of the change, during calls
//     of the run. What was not tried says so.
//   - V5: Work behind a wait for a value comes after what precedes the writes by
//     streams that can have ended the wait.
//   - V6: Where a function before the copy, which may have been pending at its call,
//     declares no writes, a change of the source is listed apart, with the function.
//   - V40: A recorded run gives the operations around those of a finding: where there are
//     too many, the records and waits between them first. On the page they are drawn on,
//     no text of the program becomes markup.
//
// # Undeclared accesses (Python)
//
//   - V20: A function that declares nothing counts as reading the arrays that its code
//     certainly works on as a whole, also those that it reaches by closures, attributes,
//     globals, defaults and partials, and the elements of these that it reads by a fixed
//     number. What it may touch beyond that is no access: it is listed as a function of
//     unknown accesses, and strict checks fail.
//   - V21: An array with gaps stands for its elements only; one with more than 4096
//     pieces for all bytes from the lowest to the highest.
//   - V22: Accesses to a Python object that functions share count if the program has
//     wrapped it for that, as reads or writes of the whole object; others do not.
//
// # Reports (Python)
//
//   - V41: A written report has each result once: its kind, level, text and call site,
//     those of the other access, a change if there is one, and how often it was seen. SARIF
//     keeps to its schema and has a fingerprint that stays when lines move; a GitHub
//     command is one line; the page needs nothing else.
//   - V46: A report of the sanitizer ends with a rule that suppresses it, and none with
//     other lines. A rule that ships for a library counts only for the versions that it
//     names; what it suppresses is counted and said with the version and the reason.
//
// # Stall
//
//   - W1: A wait without a limit that nothing can end fails, and names what waits
//     for what, with the lines of the program that enqueued functions and waits.
//   - W2: A wait that something could still end is never ended. While a thread
//     of the process that runs no code of the program's language may act, a
//     warning names it.
//   - W3: While pending work makes no progress, the same is true of what the program's main
//     thread waits for outside the runtime: a lock, a queue, a future, the end of a thread, an
//     event loop, or a loop that only asks whether work is done. In an event loop it fails in
//     the task that has waited longest for the runtime.
//   - W4: A native function that waits without a limit, for a lock of the process or for a
//     signal, waits for others. Any other one may take as long as it wants.
//   - W6: Where a launch of a graph never ends, the text names the node that it is at with
//     the line that made it, whether or not a tool was on when the graph was captured. On the
//     host device the text of a limit that passes does, too.
//   - W5: No thread of a process in which nothing is pending is woken up to check. A
//     check keeps nothing of the program alive that the program drops.
//
// # Process
//
//   - P1: The runtime's own threads block what signals the thread blocks that loads
//     it, and Python's half blocks all for them but those that a thread's own
//     instructions cause: a signal of the process interrupts the program's threads.
//   - P2: A call for which a vendor's library waits for a device that may wait for the
//     host ends where a handler of a signal raises; what it makes is given back. One
//     that gives something back does not stop its caller.
package hal
