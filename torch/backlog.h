// How far the host may be ahead of the streams.
#pragma once

#include <cstdint>

namespace halstream_torch {

// Operators that were enqueued and have not run yet, on all streams.
int64_t pending_operators();

// Counts an operator that is about to be enqueued. While very many are pending it waits until half of them have
// run, so that a loop without synchronize keeps no more than so many: GPUs have a queue of launches with an end,
// too. It orders nothing, so nothing that looks for missing waits sees it, and it gives up where nothing runs:
// the streams may wait for what the host does next.
void operator_enqueued();
// Counts an operator that has run or was dropped.
void operator_left();

}  // namespace halstream_torch
