// What a training step reports, summed on the device so that the host need not wait for it.
#pragma once

#include "core/context.h"

namespace tactus {

/// Places of the sums, in doubles. kSquaredNorm is that of the gradient, put there by the optimiser.
enum StepSum : int64_t { kSumLoss, kSumNll, kSumCtc, kSumCorrect, kSquaredNorm, kStepSums };

/// sums[kSumLoss] += *loss, and so on; sums[kSumCorrect] += sum of `rows` flags. ctc null: none.
template <class D, class A>
void add_step_sums(const Context& ctx, const A* loss, const A* nll, const A* ctc, int64_t rows, const int32_t* correct,
                   double* sums);

}  // namespace tactus
