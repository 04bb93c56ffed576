#pragma once

#include <set>
#include <string>

namespace tactus::testing_ops {

/// Names of the functions declared in autograd/*.h whose first parameter is a Tape: the ops that must have cases.
std::set<std::string> registered_ops();

}  // namespace tactus::testing_ops
