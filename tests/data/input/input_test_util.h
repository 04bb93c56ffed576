// Shared by the tests of input formats.
#pragma once

#include <functional>

#include "data/inputs.h"
#include "tests/data/data_test_util.h"

namespace tactus {

inline std::vector<Item> all_items(ItemReader& reader) {
  std::vector<Item> items;
  for (Item item; reader.next(item);) items.push_back(item);
  return items;
}

/// A damaged copy: bytes changed, removed, inserted or doubled, or the end cut off.
inline std::string mutate(std::string bytes, Rng& rng) {
  for (uint64_t n = 1 + rng.below(4); n > 0 && !bytes.empty(); --n) {
    const size_t at = rng.below(bytes.size()), count = 1 + rng.below(8);
    const auto random = static_cast<char>(rng.next());
    switch (rng.below(6)) {
      case 0:
        bytes[at] = random;
        break;
      case 1:
        bytes.erase(at, count);
        break;
      case 2:
        bytes.insert(at, std::string(count, random));
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, 4 * count));
        break;
      case 4:
        bytes.resize(at);
        break;
      default:
        bytes[at] = "\0\xff\x7f\x80\n\t-9"[rng.below(8)];
    }
  }
  return bytes;
}

/// Whatever the bytes, `read` gives items or throws DataError; some of each must have been seen.
inline void expect_items_or_data_error(const std::string& good, int rounds,
                                       const std::function<size_t(const std::string&)>& read) {
  Rng rng(hash_path(good));
  int refused = 0, taken = 0;
  for (int i = 0; i < rounds; ++i) {
    try {
      taken += read(mutate(good, rng)) > 0;
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(taken, 0);
}

}  // namespace tactus
