#include "data/prepare/prepare.h"

#include "core/files/files.h"
#include "tests/data/data_test_util.h"

namespace tactus {
namespace {

class PrepareFolder : public FolderTest {};

TEST(Prepare, SaysWhetherThisBuildReadsAudio) {
  PrepareOptions options;
  options.input.path = "/nonexistent", options.output = "/nonexistent/c.h5";
#if defined(TACTUS_WITH_AUDIO)
  EXPECT_TRUE(contains(message_of<DataError>([&] { prepare(options); }), "/nonexistent/train.tsv"));
#else
  EXPECT_TRUE(contains(message_of<ConfigError>([&] { prepare(options); }), "TACTUS_AUDIO"));
#endif
}

// Two at once would put each other's unfinished file in place.
TEST_F(PrepareFolder, IsWorkedInByOneProcess) {
  PrepareOptions options;
  options.input.path = path("in"), options.output = path("out/corpus.h5"), options.splits = {"train"};
  options.features.kind = "none", options.target.model = options.source.model = "bytes";
  write("in/train.tsv", "id\tsrc_text\ttgt_text\na\tone\teins\n");
  std::filesystem::create_directories(path("out"));
  {
    const FolderLock other(path("out"), "tactus prepare");
    EXPECT_TRUE(contains(message_of<Error>([&] { prepare(options); }), path("out") + ": another tactus prepare"));
  }
  EXPECT_FALSE(std::filesystem::exists(options.output));
  EXPECT_EQ(prepare(options).at(0).kept, 1);
  EXPECT_EQ(prepare(options).at(0).kept, 1);
}

}  // namespace
}  // namespace tactus
