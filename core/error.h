// The exceptions of Tactus. Everything below `main` throws; `main` prints what() as one line and returns exit_code().
#pragma once

#include <stdexcept>
#include <string>

namespace tactus {

/// A failure at run time (exit code 1).
struct Error : std::runtime_error {
  explicit Error(const std::string& message) : std::runtime_error(message) {}
  virtual int exit_code() const { return 1; }
};

/// A wrong configuration or command line (exit code 2).
struct ConfigError : Error {
  using Error::Error;
  int exit_code() const override { return 2; }
};

/// Wrong, missing or damaged input data (exit code 3).
struct DataError : Error {
  using Error::Error;
  int exit_code() const override { return 3; }
};

/// Memory of a device is exhausted. The message says what was asked and what is live by tag.
struct OutOfMemory : Error {
  using Error::Error;
};

/// An argument of an op has the wrong shape or type: a fault of the calling code.
struct ShapeError : Error {
  using Error::Error;
};

/// Returns the candidate with the smallest edit distance to `word`, or "" when none is near (distance above half its
/// length).
std::string nearest_name(const std::string& word, const std::string* candidates, int count);

}  // namespace tactus
