// Operators that access the parts of a tensor that an index names: which these are is known when they run.
#pragma once

#include "alias.h"
#include "operators.h"

namespace halstream_torch {

// Adds what an operator with these arguments accesses of its first one. Returns false where that is not known: an index
// is outside, or there are too many pieces.
bool add_indexed(Ranges& ranges, Indexing indexing, const Stack& arguments, uint32_t access);

}  // namespace halstream_torch
