// The preparation recipes that come with the program say what the program understands.
#include "data/prepare/prepare.h"
#include "tests/data/input/input_test_util.h"

namespace tactus {
namespace {

namespace fs = std::filesystem;

TEST(Recipes, EveryKeyIsKnown) {
  int recipes = 0;
  for (const char* folder : {"configs/data", "configs/recipes"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(TACTUS_SOURCE_DIR) / folder)) {
      PrepareOptions o;
      Config::load(entry.path().string(), {"output=x"}).read(o);
      EXPECT_FALSE(o.input.path.empty()) << entry.path();
      EXPECT_GE(o.splits.size(), 3u) << entry.path();
      ++recipes;
    }
  }
  EXPECT_GE(recipes, 15);
}

/// AMI in the layout of Kaldi's preparation: one recording for each headset, read through sox in wav.scp.
class AmiTest : public FolderTest {};

TEST_F(AmiTest, FolderOfKaldi) {
  fs::create_directories(path("ihm_dev"));
  write("ihm_dev/wav.scp",
        "AMI_ES2011a_H00 sox -c 1 -t wavpcm -e signed-integer /ami/ES2011a.Headset-0.wav -t wavpcm - |\n");
  write("ihm_dev/segments",
        "AMI_ES2011a_H00_FEE041_0003415_0003484 AMI_ES2011a_H00 34.15 34.84\n"
        "AMI_ES2011a_H00_FEE041_0003714_0003915 AMI_ES2011a_H00 37.14 39.15\n");
  write("ihm_dev/text",
        "AMI_ES2011a_H00_FEE041_0003415_0003484 HERE WE GO\nAMI_ES2011a_H00_FEE041_0003714_0003915 WELCOME EVERYBODY "
        "UM\n");
  write("ihm_dev/utt2spk",
        "AMI_ES2011a_H00_FEE041_0003415_0003484 AMI_ES2011a_H00_FEE041\n"
        "AMI_ES2011a_H00_FEE041_0003714_0003915 AMI_ES2011a_H00_FEE041\n");
  PrepareOptions o;
  Config::load(std::string(TACTUS_SOURCE_DIR) + "/configs/data/ami_ihm.yaml",
               {"output=x", "input.path=" + folder_.string()})
      .read(o);
  const std::vector<Item> items = all_items(*open_items(o.input, o.splits.at(1), OnError::stop));
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[1].media.path, "/ami/ES2011a.Headset-0.wav");
  EXPECT_DOUBLE_EQ(items[1].media.start_seconds, 37.14);
  EXPECT_NEAR(items[1].media.duration_seconds, 2.01, 1e-9);
  EXPECT_EQ(items[1].tgt_text, "WELCOME EVERYBODY UM");
  EXPECT_EQ(items[1].speaker, "AMI_ES2011a_H00_FEE041");
}

}  // namespace
}  // namespace tactus
