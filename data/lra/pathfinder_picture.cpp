#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "core/files/files.h"
#include "data/lra/generate.h"
#include "data/lra/idx.h"
#include "data/lra/pathfinder.h"

namespace tactus {
namespace {

constexpr int64_t kPicturesPerThread = 64;
constexpr float kTargetContrast = 1.5f, kDistractorContrast = 2.0f;

/// Pictures and labels of one split under construction.
struct Split {
  std::unique_ptr<AtomicFile> images, labels;
  int64_t left = 0;
  Split(const std::filesystem::path& folder, const std::string& name, int64_t count, int64_t size)
      : images(std::make_unique<AtomicFile>((folder / (name + "-images-idx3-ubyte")).string())),
        labels(std::make_unique<AtomicFile>((folder / (name + "-labels-idx1-ubyte")).string())),
        left(count) {
    images->write(idx_header({count, size, size}));
    labels->write(idx_header({count}));
  }
  void add(const PathfinderPicture& picture) {
    const auto label = static_cast<uint8_t>(picture.label);
    images->write(picture.pixels.data(), picture.pixels.size());
    labels->write(&label, 1);
    --left;
  }
};

}  // namespace

void PathfinderOptions::visit(ConfigVisitor& v) {
  constexpr double kMost = 1e8;
  v.field("train", train, {.doc = "Pictures of the training split", .min = 0, .max = kMost});
  v.field("valid", valid, {.doc = "Pictures of the validation split", .min = 0, .max = kMost});
  v.field("test", test, {.doc = "Pictures of the test split", .min = 0, .max = kMost});
  v.field("size", size, {.doc = "Side of a picture", .unit = "pixels", .min = 8, .max = 1024});
  v.field("contour_length", contour_length,
          {.doc = "Paddles of the two snakes: 14 hard, 9 intermediate, 6 easy", .min = 2, .max = 1000});
  v.field("distractor_length", distractor_length,
          {.doc = "Paddles of a distractor; 0: a third of contour_length", .min = 0, .max = 1000});
  v.field("distractors", distractors, {.doc = "Distractors; -1: 20 / distractor_length", .min = -1, .max = 1000});
  v.field("equal_contrast", equal_contrast,
          {.doc = "Distractors as bright as the two snakes; false: brighter by 4:3, as in the published set"});
  v.field("continuity", continuity, {.doc = "How straight snakes are", .min = 0, .max = 100});
  v.field("seed_distance", seed_distance,
          {.doc = "Between the tails of the two snakes", .unit = "pixels", .min = 1, .max = 255});
  v.field("padding", padding, {.doc = "Border that stays free", .unit = "pixels", .min = 0, .max = 64});
  v.field("paddle_length", paddle_length, {.doc = "Length of a stroke", .unit = "pixels", .min = 1, .max = 64});
  v.field("paddle_margin", paddle_margin, {.doc = "Free space around a stroke", .unit = "pixels", .min = 1, .max = 16});
  v.field("paddle_thickness", paddle_thickness, {.doc = "Width of a stroke", .unit = "pixels", .min = 0.1, .max = 16});
  v.field("marker_radius", marker_radius, {.doc = "Radius of a marker", .unit = "pixels", .min = 0.5, .max = 64});
  v.field("antialias", antialias, {.doc = "Strokes are drawn so many times larger, then reduced", .min = 1, .max = 16});
  v.field("paddle_retries", paddle_retries, {.doc = "Further tries to place a paddle", .min = 0, .max = 100});
  v.field("distractor_retries", distractor_retries,
          {.doc = "Further tries to place a distractor", .min = 0, .max = 100});
  v.field("seed", seed, {.doc = "Seed of the set", .min = 0});
  v.field("threads", threads, {.doc = "Threads; 0: all cores. Does not change the result", .min = 0, .max = 4096});
}

int64_t PathfinderOptions::paddles_of_distractor() const {
  return distractor_length > 0 ? distractor_length : std::max<int64_t>(1, contour_length / 3);
}

int64_t PathfinderOptions::number_of_distractors() const {
  return distractors >= 0 ? distractors : 20 / paddles_of_distractor();
}

std::vector<float> PathfinderGenerator::ink(const std::vector<Paddle>& paddles) const {
  const int64_t size = options_.size, side = 2 * reach_ + 1;
  std::vector<float> sum(static_cast<size_t>(size * size));
  for (const Paddle& paddle : paddles) {
    const float contrast = paddle.snake < 2 || options_.equal_contrast ? kTargetContrast : kDistractorContrast;
    const std::vector<float>& stroke = strokes_[paddle.degrees].ink;
    for (int64_t i = 0; i < side; ++i) {
      for (int64_t k = 0; k < side; ++k) {
        const int64_t y = paddle.anchor.y + i - reach_, x = paddle.anchor.x + k - reach_;
        if (y < 0 || y >= size || x < 0 || x >= size) continue;
        sum[y * size + x] = std::max(sum[y * size + x], contrast * stroke[i * side + k]);
      }
    }
  }
  return sum;
}

void PathfinderGenerator::mark(PathfinderPicture& picture, Rng& rng) const {
  const int from = static_cast<int>(rng.below(2));
  picture.label = static_cast<int>(rng.below(2));
  const int to = picture.label == 1 ? from : 1 - from;
  const auto of_snake = [](int snake) { return [snake](const Paddle& p) { return p.snake == snake; }; };
  const auto& paddles = picture.paddles;
  picture.markers[0] = std::find_if(paddles.begin(), paddles.end(), of_snake(from))->anchor;
  picture.markers[1] = std::find_if(paddles.rbegin(), paddles.rend(), of_snake(to))->anchor;
}

void PathfinderGenerator::render(PathfinderPicture& picture) const {
  std::vector<float> grey = ink(picture.paddles);
  for (float& value : grey) value = std::min(value, 1.0f);  // nothing outshines a marker
  for (const PixelPoint& marker : picture.markers) {
    for (int64_t y = 0; y < options_.size; ++y) {
      for (int64_t x = 0; x < options_.size; ++x) {
        const double away = std::hypot(static_cast<double>(y - marker.y), static_cast<double>(x - marker.x));
        const auto disc = static_cast<float>(std::clamp(options_.marker_radius + 0.5 - away, 0.0, 1.0));
        grey[y * options_.size + x] = std::max(grey[y * options_.size + x], disc);
      }
    }
  }
  const auto [low, high] = std::minmax_element(grey.begin(), grey.end());
  const float bottom = *low, range = std::max(*high - *low, 1e-6f);
  for (const float value : grey)
    picture.pixels.push_back(static_cast<uint8_t>(std::floor(255 * (value - bottom) / range + 0.5f)));
}

void generate_pathfinder(const PathfinderOptions& options, const std::string& folder) {
  const PathfinderGenerator generator(options);
  const std::filesystem::path root(folder);
  std::vector<Split> splits;
  splits.emplace_back(root, "train", options.train, options.size);
  splits.emplace_back(root, "valid", options.valid, options.size);
  splits.emplace_back(root, "test", options.test, options.size);
  const int64_t total = options.train + options.valid + options.test;
  size_t split = 0;
  const auto make = [&](int64_t i) { return i < total ? generator.draw(i) : PathfinderPicture{}; };
  const auto take = [&](int64_t i, const PathfinderPicture& picture) {
    while (split < splits.size() && splits[split].left == 0) ++split;
    if (split == splits.size()) return false;
    splits[split].add(picture);
    if ((i + 1) % 64 == 0 || i + 1 == total) generation_progress("pathfinder", i + 1, total);
    return true;
  };
  generate_in_order(options.threads, kPicturesPerThread, make, take);
  stderr_log().end_live();
  for (Split& s : splits) {
    s.images->commit();
    s.labels->commit();
  }
  PathfinderOptions record = options;
  record.threads = 0;  // files of any number of threads are equal
  write_text_atomic((root / "pathfinder.yaml").string(), dump_yaml(record));
}

}  // namespace tactus
