// # Graphs
//
//   - G1: While a stream captures, work enqueued on it does not run: it becomes nodes
//     of a graph, in the order of the stream. A capture begins and ends on one stream,
//     and only once at a time, also where another library captures the stream. It is not the
//     legacy default one, unless that stands for the own default stream of a framework.
//   - G2: A capture in global mode refuses unsafe calls, such as allocations, and copies
//     and fills for which a vendor's host waits, of every
//     thread, in thread-local mode those of its own thread, in relaxed mode none. A
//     thread in relaxed mode may make them. Unless it is relaxed, the thread that began
//     a capture ends it.
//   - G3: A stream that waits for an event recorded in a capture, or for a stream of it,
//     takes part in it, and its nodes come after what it waited for. The first stream has
//     to wait for the nodes of every such stream before the end: else that fails and names
//     the stream. One without nodes of its own need not be joined.
//   - G4: A call that a capture forbids fails and invalidates the capture: a synchronize or
//     query of its streams, events or device, a wait for work outside of it, or of another
//     capture, the legacy default stream beside an ordered stream that captures. What an
//     event is, its handle, its device and whether it was recorded, can be asked. Calls on
//     its streams fail until it is ended, which gives the cause. Then the streams are usable,
//     as they are after a stream of it was closed. A capture that began on a stream which the
//     program has dropped is discarded by the next call of a thread; another one goes on
//     without such a stream, which has to be joined all the same. A program that ends while
//     streams capture drops what they have captured, and waits for its other work.
//   - G5: A graph can be built of the same nodes without a capture, and cloned. Edges
//     close no cycle. Its nodes, its edges and their text for graphviz can be read. A
//     graph, and a launch on a stream that captures, can be a node of another graph. Where
//     a node cannot be added, the graph is as it was, and nothing is kept for it.
//   - G6: What nodes use is kept for as long as the graph, a clone, an executable or a
//     launch in flight needs it, and then released once: functions of the program by the thread
//     that closes the last user, where that was collected, else by a thread of the runtime.
//   - G7: An event recorded as external by a node is recorded by each launch, from the call on
//     that launches: who waits for it then waits for that node. In the capture it replaces an
//     earlier record, and a wait for it is one for work outside. A wait for an external event
//     is for the record which is the latest at that call. The body of a condition has neither.
//   - G8: A launch runs each node once, after those that it comes after; other nodes have
//     no order. Work enqueued behind the launch waits for all of them. A graph can be
//     launched any number of times, on any stream; the launches of one executable run one
//     at a time, in the order of the calls. An error of a node is that of the stream.
//   - G9: An executable can be updated to a graph with the same kinds of nodes and edges,
//     for later launches; another graph is refused, with the difference. Where threads
//     launch, update and close an executable at once, each launch runs the nodes of one
//     update, whose memory it has checked, and no update is lost.
//   - G10: Where memory that a node works on was freed, a launch fails before any node runs; an
//     instantiation, and an update to a graph with such a node, fail as well and change nothing.
//   - G11: A node of an executable can be updated by itself, for later launches, to an
//     operation of its kind on its device. An upload prepares a launch and runs nothing.
//   - G12: Memory that is allocated and freed in stream order while the stream captures is
//     the graph's: its address stays, and it is valid between the two nodes of each
//     launch. What no node frees is the program's after the launch, and has to be freed
//     before the next one, unless its owner was collected or the executable frees it. A
//     graph that allocates or frees memory has one executable at a time, no clone, and is
//     no node of another. One node frees it; another one can when no graph has that node.
//   - G13: A node with a condition runs a graph if a word in pinned memory is not 0 when
//     the node begins, and perhaps another one if it is, or a graph for as long as it is not,
//     or that one of several graphs whose number, from 0, it is: none if there is none. Nodes
//     and functions write the word; a launch begins with its initial value. A body that could
//     never end is refused, and one whose function has given the stream its error does not run again.
//     Where a function has failed without that, a loop ends with an error of the stream, which names
//     both, if nothing has changed the condition when the body ends: it might never end.
//     On a vendor's device bodies have copies, fills and kernels of one device; another node is
//     refused when the graph is instantiated.
//   - G14: Of an event that was made as external, records and waits in a capture are always
//     those of G7; elsewhere it is as any other.
//
// # Event loop
//
//   - Z1: A wait of an event loop is for the work enqueued on a stream before its begin,
//     or for the latest record of an event then. What is done is answered at once, as by
//     a synchronize. On a vendor's device a wait that begins while the legacy default
//     stream has work may also be for what is enqueued on the stream meanwhile.
//   - Z2: The loop is notified of each wait whose work is done. It is called once for
//     all those that it has not handled yet, on any thread and without a lock.
//   - Z3: The end of a wait gives the stream's first error, once, as a synchronize does,
//     and counts as one for the order of what the host does.
//   - Z4: A wait that is given up leaves nothing behind, and its work goes on. The loop is
//     not called for it, nor after its waits were closed.
//
// # Event loop (Python)
//
//   - Z5: Awaiting a stream or an event suspends the task until it is done, in asyncio and
//     in trio, and no thread waits. What is done does not suspend. A cancelled task, a loop
//     that is closed and a time limit give the wait up.
//   - Z6: The statement async with makes a stream current for the task. Its end restores what was
//     current and waits for the stream; after an exception it only restores.
//   - Z7: In a child made by fork an await of what is pending raises the error that every call
//     raises there, and the waits of the parent go on. A process may end while tasks wait.
package hal
