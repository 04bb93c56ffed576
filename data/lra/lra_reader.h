// What the readers of this folder share.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>

#include "core/error.h"
#include "data/inputs.h"
#include "data/item.h"

namespace tactus {

enum class LraSplit { train, valid, test };
/// "train", "valid" or "dev", "test"; ConfigError otherwise.
LraSplit lra_split(const std::string& name, const std::string& format);

/// ConfigError when an option is set that the sets of this folder have no use for.
void check_lra_options(const InputOptions& options);

/// The first of `folders`, tried below `path`, that holds `file`; "" means `path` itself. DataError naming all that was
/// looked for.
std::filesystem::path find_lra_folder(const std::string& path, std::initializer_list<std::string> folders,
                                      const std::string& file);

/// First item of the validation split of `count` training items: the last tenth validates.
inline int64_t validation_begin(int64_t count) { return count - count / 10; }

class LraReader : public ItemReader {
 protected:
  LraReader(OnError on_error, bool binary) : on_error_(on_error) {
    has_src_text_ = true;
    binary_source_ = binary;
  }
  /// A faulty item: stops with DataError, or counts it as dropped.
  void fault(const std::string& reason, const std::string& id, const std::string& message) {
    if (on_error_ == OnError::stop) throw DataError(message);
    count_drop(dropped_, reason, id, message);
  }

 private:
  OnError on_error_;
};

}  // namespace tactus
