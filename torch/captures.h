// What a capture of torch.cuda.CUDAGraph has besides the runtime's graph: random numbers that differ from replay to replay.
#pragma once

#include "streams.h"

#include <ATen/core/Generator.h>

#include <memory>
#include <vector>

namespace halstream_torch {

// The seeds of the random operators of a graph, in program order, for the replay that runs.
struct ReplaySeeds {
  std::vector<uint64_t> now;
};

// Which of them is that of one operator.
struct CapturedDraw {
  std::shared_ptr<ReplaySeeds> seeds;
  size_t place = 0;
};

// Random operators of the capture may draw from these generators, which nothing else draws from meanwhile.
void begin_draws(uint64_t capture, const std::vector<at::Generator>& generators);
// The capture has ended: the generators stand where they stood before.
void end_draws(uint64_t capture);

// A place in the capture for an operator that draws from `generator`; one without seeds where the capture is not one
// of torch's.
CapturedDraw draw_in_capture(uint64_t capture, const at::Generator& generator);

// Enqueues on the stream what the operators of the replay that follows draw: the numbers that they would draw without
// a graph. Does nothing where nothing is random.
void draw_for_replay(uint64_t capture, halstream_id stream);

// Nothing of the capture is replayed any more.
void forget_draws(uint64_t capture);

}  // namespace halstream_torch
