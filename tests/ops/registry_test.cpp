#include "tests/ops/registry.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "tests/ops/case.h"

namespace tactus::testing_ops {

std::set<std::string> registered_ops() {
  // A declaration at the beginning of a line: type, name, "(Tape& tape".
  static const std::regex declaration(R"((?:^|\n)[\w:<>]+ (\w+)\(Tape& tape\b)");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TACTUS_SOURCE_DIR "/autograd")) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    for (std::sregex_iterator m(text.begin(), text.end(), declaration), end; m != end; ++m) names.insert((*m)[1]);
  }
  return names;
}

TEST(OpsRegistry, EveryFunctionHasACase) {
  const std::set<std::string> ops = registered_ops();
  EXPECT_TRUE(ops.contains("linear") && ops.contains("attention") && ops.contains("recompute"));
  std::set<std::string> covered;
  for (const OpCase& c : all_cases()) {
    EXPECT_TRUE(ops.contains(c.op)) << "case " << c.name << " names an op that is not declared: " << c.op;
    covered.insert(c.op);
  }
  for (const std::string& op : ops) EXPECT_TRUE(covered.contains(op)) << op << " of autograd/ has no case";
}

TEST(OpsRegistry, CaseNamesAreUnique) {
  std::set<std::string> names;
  for (const OpCase& c : all_cases()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
}

}  // namespace tactus::testing_ops
