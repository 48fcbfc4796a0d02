// What the operators' half has from the plug-in: see module.c.
#pragma once

#include <halstream.h>

namespace halstream_paddle {

struct Shared {
  const halstream_api** core;
  const int* forked;
};

extern const Shared* shared;

inline const halstream_api* core() { return *shared->core; }
inline bool forked() { return *shared->forked != 0; }

}  // namespace halstream_paddle
