#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "data/lra/pathfinder.h"
#include "tests/data/lra/lra_test_util.h"

namespace tactus {
namespace {

class Pathfinder : public LraTest {
 protected:
  static const std::vector<PathfinderPicture>& pictures() {
    static const std::vector<PathfinderPicture> drawn = [] {
      std::vector<PathfinderPicture> all;
      const PathfinderGenerator generator{PathfinderOptions{}};
      for (int64_t i = 0; i < 120; ++i) all.push_back(generator.draw(i));
      return all;
    }();
    return drawn;
  }
};

std::vector<Paddle> of_snake(const PathfinderPicture& picture, int snake) {
  std::vector<Paddle> paddles;
  for (const Paddle& p : picture.paddles) {
    if (p.snake == snake) paddles.push_back(p);
  }
  return paddles;
}

/// Which snake begins, or ends, at the point; -1: none.
int snake_at(const PathfinderPicture& picture, PixelPoint point, bool tail) {
  for (int snake : {0, 1}) {
    const auto paddles = of_snake(picture, snake);
    if ((tail ? paddles.front() : paddles.back()).anchor == point) return snake;
  }
  return -1;
}

TEST_F(Pathfinder, LabelSaysWhetherBothMarkersAreOnOneSnake) {
  int ones = 0;
  for (const PathfinderPicture& p : pictures()) {
    const int from = snake_at(p, p.markers[0], true), to = snake_at(p, p.markers[1], false);
    ASSERT_GE(from, 0);
    ASSERT_GE(to, 0);
    EXPECT_EQ(p.label, from == to ? 1 : 0);
    ones += p.label;
  }
  EXPECT_NEAR(ones, 60, 17);  // three standard deviations
}

TEST_F(Pathfinder, SnakesHaveTheirLengthAndHangTogether) {
  for (const PathfinderPicture& p : pictures()) {
    std::map<int, size_t> lengths;
    for (const Paddle& paddle : p.paddles) ++lengths[paddle.snake];
    for (const auto& [snake, length] : lengths) EXPECT_EQ(length, snake < 2 ? 14u : 4u);
    EXPECT_LE(lengths.size(), 2u + 5u);
    for (int snake : {0, 1}) {
      const auto paddles = of_snake(p, snake);
      for (size_t i = 2; i < paddles.size(); ++i) {
        // Heads: one stroke and two margins apart, a pixel of rounding at both ends.
        const auto step = std::hypot(static_cast<double>(paddles[i].anchor.y - paddles[i - 1].anchor.y),
                                     static_cast<double>(paddles[i].anchor.x - paddles[i - 1].anchor.x));
        EXPECT_GT(step, 1.5);
        EXPECT_LT(step, 5.5);
        // Turns are below 90 degrees.
        const double turn = std::remainder(paddles[i].degrees - paddles[i - 1].degrees, 360.0);
        EXPECT_LE(std::abs(turn), 91);
      }
    }
  }
}

/// A stroke with its margin covers no pixel of another, but for its predecessor in the same snake.
TEST_F(Pathfinder, StrokesKeepTheirDistance) {
  const PathfinderGenerator generator{PathfinderOptions{}};
  for (const PathfinderPicture& p : pictures()) {
    std::map<std::pair<int64_t, int64_t>, std::vector<std::pair<int, int>>> holders;  // pixel -> snake, place in it
    std::map<int, int> counts;
    for (const Paddle& paddle : p.paddles) {
      const int place = counts[paddle.snake]++;
      for (const PixelPoint& pixel : generator.covered(paddle)) {
        ASSERT_TRUE(pixel.y >= 1 && pixel.y < 31 && pixel.x >= 1 && pixel.x < 31);
        for (const auto& [snake, other] : holders[{pixel.y, pixel.x}]) {
          EXPECT_EQ(snake, paddle.snake);
          EXPECT_EQ(other, place - 1);
        }
        holders[{pixel.y, pixel.x}].emplace_back(paddle.snake, place);
      }
    }
  }
}

TEST_F(Pathfinder, MarkersAreTheBrightestPixels) {
  for (const PathfinderPicture& p : pictures()) {
    EXPECT_EQ(p.pixels.size(), 1024u);
    EXPECT_EQ(*std::min_element(p.pixels.begin(), p.pixels.end()), 0);
    for (const PixelPoint& m : p.markers) {
      for (const auto& [dy, dx] : {std::pair{0, 0}, {0, 1}, {1, 0}, {0, -1}, {-1, 0}}) {
        EXPECT_EQ(p.pixels[(m.y + dy) * 32 + m.x + dx], 255);
      }
    }
  }
}

float ninetieth(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() * 9 / 10];
}

/// Against the published generator with the same options: 21 % of the pixels lit; the strokes of the snakes reach 0.71
/// (90th percentile of lit pixels), those of distractors 0.94, in the ratio 4:3 of their contrasts.
TEST_F(Pathfinder, BrightnessOfStrokes) {
  PathfinderOptions options;
  const PathfinderGenerator published(options);
  options.equal_contrast = true;
  const PathfinderGenerator equal(options);
  std::vector<float> target, distractor, plain;
  double lit = 0;
  for (const PathfinderPicture& p : pictures()) {
    std::vector<Paddle> snakes, rest;
    for (const Paddle& paddle : p.paddles) (paddle.snake < 2 ? snakes : rest).push_back(paddle);
    const auto keep_lit = [](const std::vector<float>& ink, std::vector<float>& to) {
      for (const float x : ink) {
        if (x > 0) to.push_back(x);
      }
    };
    std::vector<float> all;
    keep_lit(published.ink(snakes), target);
    keep_lit(published.ink(rest), distractor);
    keep_lit(equal.ink(rest), plain);
    for (const float x : published.ink(p.paddles)) lit += x > 0 ? 1.0 / 1024 : 0;
  }
  EXPECT_NEAR(lit / static_cast<double>(pictures().size()), 0.21, 0.03);
  EXPECT_NEAR(ninetieth(target), 0.71, 0.07);
  EXPECT_NEAR(ninetieth(distractor), 0.94, 0.07);
  EXPECT_NEAR(ninetieth(distractor) / ninetieth(target), 4.0 / 3, 0.05);
  EXPECT_NEAR(ninetieth(plain) / ninetieth(target), 1, 0.05);
}

TEST_F(Pathfinder, APictureDependsOnSeedAndNumberAlone) {
  PathfinderOptions options;
  const PathfinderGenerator same(options);
  EXPECT_EQ(same.draw(17).pixels, pictures()[17].pixels);
  EXPECT_NE(pictures()[16].pixels, pictures()[17].pixels);
  options.seed = 2;
  EXPECT_NE(PathfinderGenerator(options).draw(17).pixels, pictures()[17].pixels);
}

TEST_F(Pathfinder, FilesDoNotDependOnThreadsAndCanBeRead) {
  PathfinderOptions options{.train = 70, .valid = 6, .test = 5, .contour_length = 6};
  for (const int64_t threads : {1, 3}) {
    options.threads = threads;
    std::filesystem::create_directories(path(std::to_string(threads)));
    generate_pathfinder(options, path(std::to_string(threads)));
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path("1"))) {
    EXPECT_EQ(read(entry.path()), read(path("3/" + entry.path().filename().string()))) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 7);
  folder_ /= "1";
  const PathfinderGenerator generator(options);
  int64_t index = 0;
  for (const std::string split : {"train", "valid", "test"}) {
    for (const Item& item : items(open_lra_pathfinder, split)) {
      const PathfinderPicture p = generator.draw(index++);
      EXPECT_EQ(item.src_text, std::string(p.pixels.begin(), p.pixels.end()));
      EXPECT_EQ(item.tgt_text, std::to_string(p.label));
      EXPECT_TRUE(item.id.starts_with(split + "/"));
    }
  }
  EXPECT_EQ(index, 81);
  folder_ = folder_.parent_path();
}

TEST_F(Pathfinder, OptionsThatCannotBe) {
  expect_error<ConfigError>([] { PathfinderGenerator g({.seed_distance = 8}); }, {"seed_distance", "size 32"});
  const PathfinderGenerator crowded({.size = 12, .contour_length = 200, .seed_distance = 2});
  expect_error<ConfigError>([&] { crowded.draw(0); }, {"contour_length 200", "no place"});
}

}  // namespace
}  // namespace tactus
