#pragma once

#include "autograd/tape.h"
#include "core/segments.h"
#include "kernels/attention/attention.h"

namespace tactus {

/// Key rows of one source; `shared` undefined where d_shared is 0, all undefined where there is no prompt.
struct KeyInput {
  Slice k, shared, v;
};

/// Attention of kernels/attention/attention.h. Output [own rows, heads d_value].
Var attention(Tape& tape, const AttentionShape& shape, const Slice& q, const KeyInput& prompt, const KeyInput& own,
              const Segments* prompt_segments, const Segments& own_segments);

}  // namespace tactus
