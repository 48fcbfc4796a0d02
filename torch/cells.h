// Fused cells and norms, for the table in substitutes.cpp.
#pragma once

#include "operators.h"

namespace halstream_torch {

void lstm_cell(Stack& stack, uint64_t seed);
void lstm_cell_backward(Stack& stack, uint64_t seed);
void gru_cell(Stack& stack, uint64_t seed);
void gru_cell_backward(Stack& stack, uint64_t seed);
void rms_norm(Stack& stack, uint64_t seed);
void rms_norm_backward(Stack& stack, uint64_t seed);

}  // namespace halstream_torch
