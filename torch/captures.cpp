#include "captures.h"

#include "generator.h"

#include <c10/util/ScopeExit.h>

#include <map>
#include <mutex>
#include <utility>

namespace halstream_torch {

namespace {

struct Draws {
  struct Source {
    at::Generator generator;
    uint64_t steps = 0;  // of one replay
  };
  struct Draw {
    size_t source;
    uint64_t behind;  // the place where the generator stands before the replay
  };
  std::vector<Source> sources;
  std::vector<Draw> all;  // of each random operator, in program order
  std::shared_ptr<ReplaySeeds> seeds = std::make_shared<ReplaySeeds>();
};

// Never destroyed: graphs are dropped until the process ends.
struct Captures {
  std::mutex mutex;
  std::map<uint64_t, Draws> draws;
};
Captures& captures() {
  static auto* one = new Captures();
  return *one;
}

struct Replay {
  std::shared_ptr<ReplaySeeds> seeds;
  std::vector<uint64_t> next;
};

int set_seeds(void* argument, char*, size_t) {
  auto& replay = *static_cast<Replay*>(argument);
  replay.seeds->now = replay.next;  // kept: the replay may be a part of another graph
  return 0;
}

}  // namespace

void begin_draws(uint64_t capture, const std::vector<at::Generator>& generators) {
  Draws draws;
  auto give_back = c10::make_scope_exit([&] {
    for (auto& source : draws.sources) end_captured_draws(source.generator, capture);
  });
  for (const auto& generator : generators) {
    // The program may give the generator another state afterwards; replays draw from that of the capture.
    auto same = generator.graphsafe_get_state();
    if (begin_captured_draws(same, capture)) draws.sources.push_back({std::move(same)});
  }
  auto& of = captures();
  std::lock_guard<std::mutex> lock(of.mutex);
  of.draws[capture] = std::move(draws);
  give_back.release();
}

void end_draws(uint64_t capture) {
  auto& of = captures();
  std::lock_guard<std::mutex> lock(of.mutex);
  auto found = of.draws.find(capture);
  if (found == of.draws.end()) return;
  for (auto& source : found->second.sources) {
    if (source.steps == 0) source.steps = end_captured_draws(source.generator, capture);
  }
}

CapturedDraw draw_in_capture(uint64_t capture, const at::Generator& generator) {
  auto& of = captures();
  std::lock_guard<std::mutex> lock(of.mutex);
  auto found = of.draws.find(capture);
  if (found == of.draws.end()) return {};
  auto& draws = found->second;
  auto behind = draw_captured(generator, capture);
  size_t source = 0;
  while (!same_numbers(draws.sources.at(source).generator, generator)) source++;
  draws.all.push_back({source, behind});
  return {draws.seeds, draws.all.size() - 1};
}

void draw_for_replay(uint64_t capture, halstream_id stream) {
  auto replay = std::make_unique<Replay>();
  {
    auto& of = captures();
    std::lock_guard<std::mutex> lock(of.mutex);
    auto found = of.draws.find(capture);
    if (found == of.draws.end() || found->second.all.empty()) return;
    const auto& draws = found->second;
    std::vector<SequencePlace> places;
    for (const auto& source : draws.sources) places.push_back(advance(source.generator, source.steps));
    for (const auto& draw : draws.all) {
      auto place = places[draw.source];
      place.offset += draw.behind;
      replay->next.push_back(seed_at(place));
    }
    replay->seeds = draws.seeds;
  }
  halstream_operation operation{};
  operation.size = sizeof operation;
  operation.name = "random numbers of a replay";
  operation.run = &set_seeds;
  operation.argument = replay.get();
  operation.release = [](void* argument) { delete static_cast<Replay*>(argument); };
  check(core->enqueue(stream, &operation));
  replay.release();
}

void forget_draws(uint64_t capture) {
  auto& of = captures();
  std::lock_guard<std::mutex> lock(of.mutex);
  of.draws.erase(capture);
}

}  // namespace halstream_torch
