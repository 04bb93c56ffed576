#include "data/prepare.h"

#include "tests/data/data_test_util.h"

namespace tactus {
namespace {

TEST(Prepare, SaysWhetherThisBuildReadsAudio) {
  PrepareOptions options;
  options.input.path = "/nonexistent", options.output = "/nonexistent/c.h5";
#if defined(TACTUS_WITH_AUDIO)
  EXPECT_TRUE(contains(message_of<DataError>([&] { prepare(options); }), "/nonexistent/train.tsv"));
#else
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { prepare(options); }), "TACTUS_AUDIO"));
#endif
}

}  // namespace
}  // namespace tactus
