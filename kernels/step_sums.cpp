#include "kernels/step_sums.h"

namespace tactus {

template <class D, class A>
void add_step_sums(const Context&, const A* loss, const A* nll, const A* ctc, int64_t rows, const int32_t* correct,
                   double* sums) {
  sums[kSumLoss] += static_cast<double>(*loss);
  sums[kSumNll] += static_cast<double>(*nll);
  if (ctc) sums[kSumCtc] += static_cast<double>(*ctc);
  int64_t right = 0;
  for (int64_t i = 0; i < rows; ++i) right += correct[i];
  sums[kSumCorrect] += static_cast<double>(right);
}

template void add_step_sums<Cpu, float>(const Context&, const float*, const float*, const float*, int64_t,
                                        const int32_t*, double*);
template void add_step_sums<Cpu, double>(const Context&, const double*, const double*, const double*, int64_t,
                                         const int32_t*, double*);

}  // namespace tactus
