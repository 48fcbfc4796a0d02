// What the processes of a job know of each other: who the ranks of a group are, which collectives each has begun, and
// what each waits for. Stall reports across ranks are made of it (`halstream._stalls.ranks`).
#pragma once

#include "collectives.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace halstream_torch {

// How a rank is found by the others of its machine.
struct RankIdentity {
  char machine[96];  // its boot and its namespace of processes; empty where no other process can be looked at
  uint64_t token;    // of this process alone
  int64_t pid;
  int64_t file;  // the descriptor of the file in which it says that it waits
  int64_t rank;  // in the group that the process made first, which is torch's default group
  int64_t group;  // how many groups the process had made before this one
};

// Messages between two ranks, by the peer and torch's tag: how many were begun.
using Messages = std::map<std::pair<int, int>, uint64_t>;

// A group of ranks as this process sees it. Its counters belong to the functions of ranks.cpp.
struct RankGroup {
  int rank = 0, size = 1;
  std::string key;   // the same in all ranks of the group
  std::string name;  // in reports
  std::vector<RankIdentity> members;
  uint64_t begun = 0;  // collectives, by the number of the latest
  Messages sent, received;
};
using RankGroupPointer = std::shared_ptr<RankGroup>;

// Lets the ranks of a backend tell each other who they are: all of them have to call it.
RankGroupPointer meet(c10d::Backend* inner, Milliseconds timeout);

// What an operation of a group is, for others to read.
struct CollectiveCall {
  std::string title;  // "all_reduce 7"
  std::string place;  // where the program made the call; empty if it is not known
  uint64_t number = 0;  // of a collective; 0 for sends and receives
};

// An operation of a group that runs, from the first moment at which other ranks may see something of it.
class RunningCollective {
 public:
  // Counts what the steps send and receive. Without a group nothing is said.
  RunningCollective(RankGroupPointer group, CollectiveCall call, const std::vector<Step>& steps);
  ~RunningCollective();
  RunningCollective(const RunningCollective&) = delete;
  RunningCollective& operator=(const RunningCollective&) = delete;

  // All ranks are in it: it waits for nobody any more.
  void all_arrived();

 private:
  uint64_t id_ = 0;
};

// One message that an operation waits for.
struct Message {
  int peer, tag;
  uint64_t number;
};

// A copy of what an operation that runs waits for.
struct Waiting {
  int64_t thread;  // the system's number of it
  RankGroupPointer group;
  CollectiveCall call;
  std::vector<Message> receives;
};

struct RankState {
  // Changes whenever an operation begins, has met the others, or ends.
  uint64_t progress;
  RankIdentity own;
  std::vector<RankGroup> groups;
  std::vector<Waiting> waiting;  // for other ranks
  std::vector<int64_t> threads;  // that carry out what waits, and what does not
};
// Empty before the first group of several ranks.
std::unique_ptr<RankState> rank_state();

// Says to the other ranks of the machine that this one waits, as long as there is no progress, and what it has found of
// all of them: the error of a collective whose peer then ends has that text, too. False if there was progress.
bool publish_wait(uint64_t progress, const std::string& text, const std::string& found);
// Takes it back.
void withdraw_wait();
// What was found, while it holds.
std::string found_of_ranks();

}  // namespace halstream_torch
