// Laws of the training form: it equals the incremental one, packing changes nothing, the future is not seen.
#include "tests/laws/laws.h"

namespace tactus::laws {
namespace {

constexpr int64_t kWidth = Mechanism::kWidth;

/// A packed batch and its results.
struct Batch {
  std::vector<int64_t> prompt_lengths, own_lengths;
  std::vector<int32_t> utterances;
  std::vector<double> prompt, own, dy;
  static Batch make(const std::vector<int64_t>& prompts, const std::vector<int64_t>& owns) {
    Batch b{prompts, owns, {}, {}, {}, {}};
    for (size_t i = 0; i < owns.size(); ++i) b.utterances.push_back(static_cast<int32_t>(40 - 7 * i));
    b.prompt = normals(sum_of(prompts) * kWidth, 1);
    b.own = normals(sum_of(owns) * kWidth, 2);
    b.dy = normals(sum_of(owns) * kWidth, 3);
    return b;
  }
  /// Utterance i by itself.
  Batch alone(size_t i) const {
    const int64_t p = sum_of({prompt_lengths.begin(), prompt_lengths.begin() + static_cast<std::ptrdiff_t>(i)});
    const int64_t o = sum_of({own_lengths.begin(), own_lengths.begin() + static_cast<std::ptrdiff_t>(i)});
    const int64_t o_end = o + own_lengths[i];
    return {{prompt_lengths[i]},
            {own_lengths[i]},
            {utterances[i]},
            rows_of(prompt, p, p + prompt_lengths[i], kWidth),
            rows_of(own, o, o_end, kWidth),
            rows_of(dy, o, o_end, kWidth)};
  }
};
struct Results {
  std::vector<double> y, dprompt, down, dweights;
};

Results train(const Context& ctx, Mechanism& m, const Batch& b, bool dropout) {
  Tape tape(ctx);
  Tables tables(ctx);
  Pass pass{tape, tables, dropout, 99};
  const Segments prompt_segments(ctx, b.prompt_lengths, b.utterances), own_segments(ctx, b.own_lengths, b.utterances);
  const Var own = tape.leaf(m.upload(b.own)), prompt = tape.leaf(m.upload(b.prompt));
  const AttentionLayout layout = make_layout(ctx, &prompt_segments, own_segments, true);
  const Var y = m->train(pass, own, prompt, layout);
  Results r;
  r.y = ctx.download_real(y.value());
  m.store().zero_grad();
  tape.backward({y}, {m.upload(b.dy)});
  r.down = ctx.download_real(own.grad());
  if (prompt.rows() > 0) r.dprompt = ctx.download_real(prompt.grad());
  r.dweights = ctx.download_real(m.store().flat_grad());
  return r;
}

class AttentionTraining : public LawSuite {
 protected:
  const Context& ctx() const { return shared_context(GetParam().device); }
};

TEST_P(AttentionTraining, RowOfTrainEqualsPrefillAndStep) {
  Mechanism m(ctx(), GetParam());
  if (!m->traits().causal || !m->traits().exact) GTEST_SKIP() << "not an exact causal mechanism";
  const Batch b = Batch::make({0, 1, 5, 8, 7}, {3, 6, 1, 4, 9});
  const std::vector<double> y = train(ctx(), m, b, false).y;
  Decoding decoding(ctx(), m, dtype(), b.prompt_lengths, b.prompt, 5, 9);
  std::vector<int32_t> live = {0, 1, 2, 3, 4};
  const Segments own(ctx(), b.own_lengths);
  for (int64_t t = 0; t < 9; ++t) {
    // Utterances that are over leave: the set of hypotheses shrinks on the way.
    std::vector<int32_t> parents, next;
    for (size_t r = 0; r < live.size(); ++r) {
      if (t < b.own_lengths[static_cast<size_t>(live[r])]) {
        parents.push_back(static_cast<int32_t>(r));
        next.push_back(live[r]);
      }
    }
    if (parents.size() < live.size()) decoding.reorder(parents);
    live = next;
    std::vector<double> x, want;
    for (int32_t u : live) {
      append(x, rows_of(b.own, own.begin(u) + t, own.begin(u) + t + 1, kWidth));
      append(want, rows_of(y, own.begin(u) + t, own.begin(u) + t + 1, kWidth));
    }
    ASSERT_LE(error_of(decoding.step(x), want), pick(1e-13, 5e-6, 2e-5, 4e-2)) << "row " << t;
  }
}

TEST_P(AttentionTraining, PackedEqualsAlone) {
  for (bool dropout : {false, true}) {
    Mechanism m(ctx(), GetParam(), 0.3);
    const Batch b = Batch::make({7, 0, 1, 12}, {5, 9, 1, 3});
    const Results packed = train(ctx(), m, b, dropout);
    Results sum;
    for (size_t i = 0; i < b.own_lengths.size(); ++i) {
      const Results alone = train(ctx(), m, b.alone(i), dropout);
      append(sum.y, alone.y);
      append(sum.down, alone.down);
      append(sum.dprompt, alone.dprompt);
      sum.dweights.resize(alone.dweights.size());
      for (size_t k = 0; k < alone.dweights.size(); ++k) sum.dweights[k] += alone.dweights[k];
    }
    EXPECT_LE(error_of(packed.y, sum.y), pick(1e-14, 1e-6, 1e-5, 2e-2)) << "dropout " << dropout;
    EXPECT_LE(error_of(packed.down, sum.down), pick(1e-14, 2e-6, 1e-5, 2e-2)) << "dropout " << dropout;
    EXPECT_LE(error_of(packed.dprompt, sum.dprompt), pick(1e-14, 2e-6, 1e-5, 2e-2)) << "dropout " << dropout;
    EXPECT_LE(error_of(packed.dweights, sum.dweights), pick(1e-13, 5e-6, 2e-5, 2e-2)) << "dropout " << dropout;
  }
}

TEST_P(AttentionTraining, DropoutChangesTheOutput) {
  Mechanism m(ctx(), GetParam(), 0.3);
  const Batch b = Batch::make({7, 4}, {5, 9});
  EXPECT_GT(error_of(train(ctx(), m, b, true).y, train(ctx(), m, b, false).y), 1e-2);
}

TEST_P(AttentionTraining, FutureCannotChangeThePast) {
  Mechanism m(ctx(), GetParam());
  if (!m->traits().causal) GTEST_SKIP() << "not causal";
  const Batch b = Batch::make({5, 3}, {9, 8});
  const std::vector<double> before = train(ctx(), m, b, false).y;
  for (int64_t t : {1, 2, 3, 4, 7}) {
    Batch changed = b;
    const std::vector<double> other = normals(9 * kWidth, 77, 30);
    std::copy(other.begin() + t * kWidth, other.end(), changed.own.begin() + t * kWidth);
    const std::vector<double> after = train(ctx(), m, changed, false).y;
    // Same shapes, same kernels: rows before t, and the other utterance, must be the same bits.
    EXPECT_EQ(rows_of(after, 0, t, kWidth), rows_of(before, 0, t, kWidth)) << "row " << t;
    EXPECT_EQ(rows_of(after, 9, 17, kWidth), rows_of(before, 9, 17, kWidth)) << "other utterance";
    EXPECT_GT(error_of(rows_of(after, t, t + 1, kWidth), rows_of(before, t, t + 1, kWidth)), 1e-3) << "row " << t;
  }
}

TEST_P(AttentionTraining, EveryPromptRowIsSeen) {
  Mechanism m(ctx(), GetParam());
  const Batch b = Batch::make({7}, {3});
  const std::vector<double> before = train(ctx(), m, b, false).y;
  for (int64_t row = 0; row < 7; ++row) {
    Batch changed = b;
    const std::vector<double> other = normals(kWidth, 78, 3);
    std::copy(other.begin(), other.end(), changed.prompt.begin() + row * kWidth);
    EXPECT_GT(error_of(train(ctx(), m, changed, false).y, before), 1e-4) << "prompt row " << row;
  }
}

const std::vector<int64_t> kStrides = {1, 2, 3, 4};
INSTANTIATE_TEST_SUITE_P(Cpu, AttentionTraining, ::testing::ValuesIn(cases(Device::cpu, kStrides)), case_name);
INSTANTIATE_TEST_SUITE_P(Cuda, AttentionTraining, ::testing::ValuesIn(cases(Device::cuda, kStrides)), case_name);

}  // namespace
}  // namespace tactus::laws
