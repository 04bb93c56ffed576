// Shared by the tests of data/lra/.
#pragma once

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/lra/lra_inputs.h"
#include "tests/data/data_test_util.h"

namespace tactus {

class LraTest : public FolderTest {
 protected:
  using Open = std::unique_ptr<ItemReader> (*)(const InputOptions&, const std::string&, OnError);

  static std::string read(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

  InputOptions input(const std::string& format) const {
    InputOptions options;
    options.format = format;
    options.path = folder_.string();
    return options;
  }
  std::vector<Item> items(Open open, const std::string& split, OnError on_error = OnError::stop,
                          DropCounts* drops = nullptr) const {
    const auto reader = open(input("test format"), split, on_error);
    std::vector<Item> all;
    for (Item item; reader->next(item);) all.push_back(item);
    if (reader->total() >= 0) {
      EXPECT_EQ(reader->total(), static_cast<int64_t>(all.size()) + tactus::total(reader->dropped()));
    }
    if (drops != nullptr) *drops = reader->dropped();
    return all;
  }

  /// The message of the exception of type E that f throws, which must be one line that holds each of `parts`.
  template <class E>
  static void expect_error(const std::function<void()>& f, const std::vector<std::string>& parts) {
    try {
      f();
      ADD_FAILURE() << "no exception; expected " << parts.at(0);
    } catch (const E& e) {
      const std::string text = e.what();
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
    } catch (const std::exception& e) {
      ADD_FAILURE() << "another exception: " << e.what();
    }
  }
};

}  // namespace tactus
