// Damaged matrix files: every outcome is a matrix or a DataError, and memory stays in proportion to the file.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <new>

#include "core/rng.h"
#include "data/matrix/ark.h"
#include "data/matrix/zip.h"
#include "tests/data/matrix/matrix_test_util.h"

namespace tactus::matrix_test {
namespace {

/// What the calling thread holds on the heap while `counting` is set. The operators below replace those of the whole
/// program; without the flag they only pass on.
struct HeapCount {
  bool counting = false;
  size_t live = 0, peak = 0, limit = 0;
};
thread_local HeapCount heap;

}  // namespace
}  // namespace tactus::matrix_test

void* operator new(size_t size) {
  tactus::matrix_test::HeapCount& heap = tactus::matrix_test::heap;
  // A wild request must fail the test, not exhaust the machine.
  const bool refused = heap.counting && size > heap.limit;
  void* block = refused ? nullptr : std::malloc(std::max<size_t>(size, 1));
  if (block == nullptr) throw std::bad_alloc();
  if (heap.counting) {
    heap.live += malloc_usable_size(block);
    heap.peak = std::max(heap.peak, heap.live);
  }
  return block;
}
void operator delete(void* block) noexcept {
  tactus::matrix_test::HeapCount& heap = tactus::matrix_test::heap;
  if (heap.counting && block != nullptr) heap.live -= std::min(heap.live, malloc_usable_size(block));
  std::free(block);
}
void operator delete(void* block, size_t) noexcept { operator delete(block); }
// The library's temporary buffers come from this one and go to the one above.
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* block, const std::nothrow_t&) noexcept { operator delete(block); }

namespace tactus::matrix_test {
namespace {

struct Outcome {
  int read = 0, refused = 0;
};

/// Flips, cuts, extends, repeats or overwrites some bytes, with extreme integers among what is written.
std::string damaged(const std::string& whole, Rng& rng) {
  std::string bytes = whole;
  const auto below = [&](size_t n) { return static_cast<size_t>(rng.below(std::max<size_t>(n, 1))); };
  constexpr uint64_t kExtreme[] = {0,          1,          0x7f,       0xff,       0x7fff,     0xffff,
                                   0x7fffffff, 0x80000000, 0xffffffff, 1ULL << 63, ~0ULL >> 1, ~0ULL};
  for (size_t change = 1 + below(3); change > 0; --change) {
    // Headers at the beginning and directories at the end are where lies matter.
    const size_t size = bytes.size(), head = below(std::min<size_t>(size, 80)),
                 tail = below(std::min<size_t>(size, 256));
    const size_t at = std::array{head, size - std::min(size, tail + 1), below(size)}[below(3)];
    switch (below(6)) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        bytes.append(below(40), static_cast<char>(below(256)));
        break;
      case 3: {
        const std::string integer = packed(kExtreme[below(std::size(kExtreme))]).substr(0, size_t{1} << below(4));
        bytes.replace(at, std::min(integer.size(), bytes.size() - at), integer);
        break;
      }
      case 4:
        bytes.insert(at, bytes.substr(at, below(20)));
        break;
      default: {
        constexpr const char* kWords[] = {"99999999999", "65536", "[", "]", ";",  "\n",  "nan",
                                          "1e999",       "(",     ",", "'", "-1", "FM ", "CM2 "};
        const std::string word = kWords[below(std::size(kWords))];
        bytes.replace(at, std::min(below(word.size() + 1), bytes.size() - at), word);
      }
    }
  }
  return bytes;
}

class MatrixFuzzTest : public MatrixTest {
 protected:
  /// Runs `read` on `rounds` damaged copies of `whole`.
  Outcome run(const std::string& whole, uint64_t seed, int rounds,
              const std::function<void(const std::string&)>& read) {
    Outcome outcome;
    size_t highest = 0;
    const std::string file = path("fuzz");
    for (int round = 0; round < rounds; ++round) {
      Rng rng(mix_key(seed, static_cast<uint64_t>(round)));
      const std::string bytes = damaged(whole, rng);
      write("fuzz", bytes);
      const size_t limit = std::max<size_t>(65536, 16 * bytes.size());
      heap = {.counting = true, .limit = limit};
      try {
        read(file);
        heap.counting = false;
        ++outcome.read;
      } catch (const DataError& e) {
        heap.counting = false;
        ++outcome.refused;
        const std::string text = e.what();
        EXPECT_TRUE(text.starts_with(file) && !contains(text, "\n")) << text;
      } catch (const std::exception& e) {
        heap.counting = false;
        ADD_FAILURE() << "seed " << seed << ", round " << round << ": " << e.what();
      }
      highest = std::max(highest, heap.peak);
      EXPECT_LE(heap.peak, limit) << "seed " << seed << ", round " << round;
    }
    EXPECT_GT(outcome.refused, rounds / 10);
    EXPECT_GT(highest, 0u) << "nothing was counted";
    return outcome;
  }

  Outcome run_matrix(MediaRef::Kind kind, const std::string& whole, uint64_t seed, int rounds) {
    return run(whole, seed, rounds, [&](const std::string& file) {
      const FeatureMatrix m = read_feature_matrix(media_of(kind, file));
      EXPECT_GT(m.rows * m.layers * m.width, 0);
      EXPECT_EQ(m.values.size(), static_cast<size_t>(m.rows * m.layers * m.width));
    });
  }
};

TEST_F(MatrixFuzzTest, Npy) {
  const std::string zip = bytes_of(fixture("arrays.npz"));
  uint64_t seed = 100;
  int read = 0;
  for (const matrix::ZipMember& member : matrix::list_zip(fixture("arrays.npz"))) {
    const std::string whole = zip.substr(static_cast<size_t>(member.offset), static_cast<size_t>(member.bytes));
    read += run_matrix(MediaRef::Kind::npy, whole, ++seed, 100).read;
  }
  EXPECT_GT(read, 50);
}

TEST_F(MatrixFuzzTest, ArkMatricesOfEachType) {
  const std::string ark = bytes_of(fixture("matrices.ark"));
  uint64_t seed = 200;
  matrix::ArkReader reader(fixture("matrices.ark"));
  for (matrix::ArkEntry entry; reader.next(entry);) {
    SCOPED_TRACE(entry.key);
    const std::string whole = ark.substr(static_cast<size_t>(entry.offset), static_cast<size_t>(entry.bytes));
    EXPECT_GT(run_matrix(MediaRef::Kind::ark, whole, ++seed, 500).read, 50);
  }
  const std::string text = "[\n  1 -2.5 +3 \n  4e1 5E-1 6 \n 7 8 9 ]\n";
  EXPECT_GT(run_matrix(MediaRef::Kind::ark, text, ++seed, 500).read, 20);
}

TEST_F(MatrixFuzzTest, ArkLists) {
  const std::string whole = bytes_of(fixture("matrices.ark")) + "text [\n 1 2 \n 3 4 ]\nmore [ 1 ]\n";
  const Outcome outcome = run(whole, 300, 1000, [](const std::string& file) {
    matrix::ArkReader reader(file);
    int64_t end = 0;
    for (matrix::ArkEntry entry; reader.next(entry);) {
      EXPECT_GT(entry.offset, end);
      end = entry.offset + entry.bytes;
      read_feature_matrix(media_of(MediaRef::Kind::ark, file, entry.offset, entry.bytes));
    }
  });
  EXPECT_GT(outcome.read, 50);
}

TEST_F(MatrixFuzzTest, Zip) {
  const Outcome outcome = run(bytes_of(fixture("arrays.npz")), 400, 1000, [](const std::string& file) {
    const int64_t size = static_cast<int64_t>(std::filesystem::file_size(file));
    for (const matrix::ZipMember& member : matrix::list_zip(file)) {
      EXPECT_GE(member.offset, 30);
      EXPECT_LE(member.offset + member.bytes, size);
    }
  });
  EXPECT_GT(outcome.read, 20);
}

}  // namespace
}  // namespace tactus::matrix_test
