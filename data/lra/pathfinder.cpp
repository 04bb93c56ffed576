#include "data/lra/pathfinder.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace tactus {
namespace {

constexpr int kFree = -1, kBorder = -2;
/// Ink from which on a pixel belongs to a stroke, where strokes keep their distance.
constexpr float kStrokeInk = 0.1f;
/// Fainter ink is the ringing of the reduction, several pixels away from the stroke, and is left out.
constexpr double kLeastInk = 1.0 / 32;
constexpr int64_t kMostAttempts = 100000;

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

double distance_to_segment(double y, double x, double end_y, double end_x) {
  const double length2 = end_y * end_y + end_x * end_x;
  const double along = std::clamp((y * end_y + x * end_x) / length2, 0.0, 1.0);
  return std::hypot(y - along * end_y, x - along * end_x);
}

/// Rows of the matrix that reduces `from` samples by `factor`: Lanczos windows of three lobes, each row with sum 1.
std::vector<double> lanczos(int64_t to, int64_t factor) {
  const int64_t from = to * factor;
  const auto sinc = [](double t) { return t == 0 ? 1 : std::sin(std::numbers::pi * t) / (std::numbers::pi * t); };
  std::vector<double> weights(static_cast<size_t>(to * from));
  for (int64_t i = 0; i < to; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < from; ++j) {
      const double t = (static_cast<double>(j) + 0.5) / static_cast<double>(factor) - (static_cast<double>(i) + 0.5);
      if (std::abs(t) < 3) sum += weights[i * from + j] = sinc(t) * sinc(t / 3);
    }
    for (int64_t j = 0; j < from; ++j) weights[i * from + j] /= sum;
  }
  return weights;
}

/// [to, from] x [from, from] x [from, to]
std::vector<double> reduce(const std::vector<double>& picture, int64_t to, int64_t factor) {
  const int64_t from = to * factor;
  const std::vector<double> weights = lanczos(to, factor);
  std::vector<double> rows(static_cast<size_t>(to * from)), small(static_cast<size_t>(to * to));
  for (int64_t i = 0; i < to; ++i)
    for (int64_t j = 0; j < from; ++j)
      for (int64_t x = 0; x < from; ++x) rows[i * from + x] += weights[i * from + j] * picture[j * from + x];
  for (int64_t i = 0; i < to; ++i)
    for (int64_t k = 0; k < to; ++k)
      for (int64_t x = 0; x < from; ++x) small[i * to + k] += rows[i * from + x] * weights[k * from + x];
  return small;
}

}  // namespace

/// Which paddle holds each pixel: its index, kFree or kBorder. Pixels of two paddles belong to the older one.
struct PathfinderGenerator::Scene {
  std::vector<int> holder;
  std::vector<Paddle> paddles;
};

struct PathfinderGenerator::Snake {
  int number = 0;
  double y = 0, x = 0;  ///< pivot of the last paddle
  int degrees = 0;      ///< its direction, away from the pivot
  int last = -1;        ///< its index in the scene
};

PathfinderGenerator::PathfinderGenerator(const PathfinderOptions& options) : options_(options) {
  const int64_t middle = 2 * options.seed_distance;
  if (options.size <= 2 * middle)
    throw ConfigError("pathfinder: the first snake begins at least 2 seed_distance = " + std::to_string(middle) +
                      " pixels from every edge, which a picture of size " + std::to_string(options.size) +
                      " does not have; lower seed_distance");
  reach_ = options.paddle_length + static_cast<int64_t>(std::ceil(options.paddle_thickness)) + options.paddle_margin;
  for (int64_t y = -options.paddle_margin; y <= options.paddle_margin; ++y) {
    for (int64_t x = -options.paddle_margin; x <= options.paddle_margin; ++x) {
      if (y * y + x * x <= options.paddle_margin * options.paddle_margin) margin_disc_.push_back({y, x});
    }
  }
  for (int degrees = 0; degrees < 360; ++degrees) strokes_.push_back(make_stroke(degrees));
}

PathfinderGenerator::Stroke PathfinderGenerator::make_stroke(int degrees) const {
  const int64_t side = 2 * reach_ + 1, factor = options_.antialias, fine = side * factor;
  const double scale = static_cast<double>(factor), centre = static_cast<double>(fine) / 2;
  const double length = static_cast<double>(options_.paddle_length) * scale;
  const double half_width = std::max(1.0, options_.paddle_thickness * scale) / 2;
  std::vector<double> drawn(static_cast<size_t>(fine * fine));
  for (int64_t y = 0; y < fine; ++y) {
    for (int64_t x = 0; x < fine; ++x) {
      const double away =
          distance_to_segment(static_cast<double>(y) + 0.5 - centre, static_cast<double>(x) + 0.5 - centre,
                              length * std::sin(radians(degrees)), length * std::cos(radians(degrees)));
      drawn[y * fine + x] = std::clamp(half_width + 0.5 - away, 0.0, 1.0);
    }
  }
  Stroke stroke;
  for (const double ink : reduce(drawn, side, factor))
    stroke.ink.push_back(ink < kLeastInk ? 0.0f : static_cast<float>(std::min(ink, 1.0)));
  std::vector<bool> covered(static_cast<size_t>(side * side));
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      if (stroke.ink[y * side + x] < kStrokeInk) continue;
      for (const PixelPoint& d : margin_disc_) {
        const int64_t at = (y + d.y) * side + x + d.x;
        if (y + d.y < 0 || y + d.y >= side || x + d.x < 0 || x + d.x >= side || covered[at]) continue;
        covered[at] = true;
        stroke.covered.push_back({y + d.y - reach_, x + d.x - reach_});
      }
    }
  }
  return stroke;
}

std::vector<PixelPoint> PathfinderGenerator::covered(const Paddle& paddle) const {
  std::vector<PixelPoint> pixels;
  for (const PixelPoint& d : strokes_[paddle.degrees].covered)
    pixels.push_back({paddle.anchor.y + d.y, paddle.anchor.x + d.x});
  return pixels;
}

bool PathfinderGenerator::is_clear(const Scene& scene, const Paddle& paddle, int exempt) const {
  for (const PixelPoint& d : strokes_[paddle.degrees].covered) {
    const int64_t y = paddle.anchor.y + d.y, x = paddle.anchor.x + d.x;
    if (y < 0 || y >= options_.size || x < 0 || x >= options_.size) return false;
    const int holder = scene.holder[y * options_.size + x];
    if (holder != kFree && holder != exempt) return false;
  }
  return true;
}

void PathfinderGenerator::place(Scene& scene, const Paddle& paddle) const {
  for (const PixelPoint& d : strokes_[paddle.degrees].covered) {
    int& holder = scene.holder[(paddle.anchor.y + d.y) * options_.size + paddle.anchor.x + d.x];
    if (holder == kFree) holder = static_cast<int>(scene.paddles.size());
  }
  scene.paddles.push_back(paddle);
}

bool PathfinderGenerator::begin(Scene& scene, Snake& snake, const Paddle& paddle) const {
  if (!is_clear(scene, paddle, kFree)) return false;
  const auto margin = static_cast<double>(options_.paddle_margin);
  snake.number = paddle.snake;
  snake.degrees = paddle.degrees;
  snake.y = static_cast<double>(paddle.anchor.y) - margin * std::sin(radians(paddle.degrees));
  snake.x = static_cast<double>(paddle.anchor.x) - margin * std::cos(radians(paddle.degrees));
  snake.last = static_cast<int>(scene.paddles.size());
  place(scene, paddle);
  return true;
}

bool PathfinderGenerator::begin_distractor(Scene& scene, Snake& snake, Rng& rng) const {
  Paddle paddle{.snake = snake.number, .anchor = {}, .degrees = static_cast<int>(rng.below(360))};
  std::vector<PixelPoint> places;
  for (int64_t y = 0; y < options_.size; ++y) {
    for (int64_t x = 0; x < options_.size; ++x) {
      paddle.anchor = {y, x};
      if (is_clear(scene, paddle, kFree)) places.push_back(paddle.anchor);
    }
  }
  if (places.empty()) return false;
  paddle.anchor = places[rng.below(places.size())];
  return begin(scene, snake, paddle);
}

bool PathfinderGenerator::extend(Scene& scene, Snake& snake, Rng& rng) const {
  const auto margin = static_cast<double>(options_.paddle_margin), length = static_cast<double>(options_.paddle_length);
  const double y = snake.y + (length + 2 * margin) * std::sin(radians(snake.degrees));
  const double x = snake.x + (length + 2 * margin) * std::cos(radians(snake.degrees));
  const double radius = length + margin;
  struct Head {
    PixelPoint at;
    int degrees;
    uint64_t weight;
  };
  std::vector<Head> heads;
  uint64_t sum = 0;
  for (auto py = static_cast<int64_t>(std::floor(y - radius)); py <= static_cast<int64_t>(std::ceil(y + radius));
       ++py) {
    for (auto px = static_cast<int64_t>(std::floor(x - radius)); px <= static_cast<int64_t>(std::ceil(x + radius));
         ++px) {
      const double dy = static_cast<double>(py) - y, dx = static_cast<double>(px) - x;
      if (std::abs(std::hypot(dy, dx) - radius) >= 0.5) continue;
      const double angle = std::atan2(dy, dx) * 180 / std::numbers::pi;
      const double turn = std::abs(radians(std::remainder(angle - snake.degrees, 360)));
      const double root = std::cos(std::min(options_.continuity * turn, std::numbers::pi / 2));
      // Whole weights: a draw must not depend on the last bit of a cosine.
      const auto weight = static_cast<uint64_t>(std::lround(65536 * root * root));
      const bool blocked = std::any_of(margin_disc_.begin(), margin_disc_.end(), [&](const PixelPoint& d) {
        const int64_t my = py + d.y, mx = px + d.x;
        if (my < 0 || my >= options_.size || mx < 0 || mx >= options_.size) return true;
        const int holder = scene.holder[my * options_.size + mx];
        return holder != kFree && holder != snake.last;
      });
      if (weight == 0 || blocked) continue;
      heads.push_back({{py, px}, (static_cast<int>(std::lround(angle)) + 360) % 360, weight});
      sum += weight;
    }
  }
  for (int64_t attempt = 0; attempt <= options_.paddle_retries && sum > 0; ++attempt) {
    uint64_t at = rng.below(sum);
    const auto head = std::find_if(heads.begin(), heads.end(), [&](const Head& h) {
      if (at < h.weight) return true;
      at -= h.weight;
      return false;
    });
    const Paddle paddle{snake.number, head->at, (head->degrees + 180) % 360};
    if (!is_clear(scene, paddle, snake.last)) continue;
    snake = {snake.number, y, x, head->degrees, static_cast<int>(scene.paddles.size())};
    place(scene, paddle);
    return true;
  }
  return false;
}

bool PathfinderGenerator::draw_pair(Scene& scene, Rng& rng) const {
  const int64_t middle = 2 * options_.seed_distance;
  const auto side = static_cast<uint64_t>(options_.size - 2 * middle);
  Snake snakes[2];
  Paddle first{0, {}, static_cast<int>(rng.below(360))};
  first.anchor.y = middle + static_cast<int64_t>(rng.below(side));
  first.anchor.x = middle + static_cast<int64_t>(rng.below(side));
  const double towards = radians(static_cast<double>(rng.below(360)));
  const auto away = static_cast<double>(options_.seed_distance);
  const PixelPoint tail{first.anchor.y + std::lround(away * std::sin(towards)),
                        first.anchor.x + std::lround(away * std::cos(towards))};
  if (!begin(scene, snakes[0], first)) return false;
  if (!begin(scene, snakes[1], {1, tail, static_cast<int>(rng.below(360))})) return false;
  for (int64_t i = 1; i < options_.contour_length; ++i) {
    for (Snake& snake : snakes) {
      if (!extend(scene, snake, rng)) return false;
    }
  }
  return true;
}

void PathfinderGenerator::draw_distractor(Scene& scene, int number, Rng& rng) const {
  for (int64_t attempt = 0; attempt <= options_.distractor_retries; ++attempt) {
    Scene trial = scene;
    Snake snake{.number = number};
    bool complete = begin_distractor(trial, snake, rng);
    for (int64_t i = 1; complete && i < options_.paddles_of_distractor(); ++i) complete = extend(trial, snake, rng);
    if (!complete) continue;
    scene = std::move(trial);
    return;
  }
}

PathfinderPicture PathfinderGenerator::draw(int64_t index) const {
  const uint64_t key = mix_key(static_cast<uint64_t>(options_.seed), hash_path("pathfinder"));
  Rng rng(mix_key(key, static_cast<uint64_t>(index)));
  Scene empty;
  empty.holder.assign(static_cast<size_t>(options_.size * options_.size), kFree);
  for (int64_t y = 0; y < options_.size; ++y) {
    for (int64_t x = 0; x < options_.size; ++x) {
      const int64_t edge = std::min({y, x, options_.size - 1 - y, options_.size - 1 - x});
      if (edge < options_.padding) empty.holder[y * options_.size + x] = kBorder;
    }
  }
  PathfinderPicture picture;
  Scene scene;
  do {
    if (++picture.attempts > kMostAttempts)
      throw ConfigError("pathfinder: two snakes of contour_length " + std::to_string(options_.contour_length) +
                        " found no place in a picture of size " + std::to_string(options_.size) + " in " +
                        std::to_string(kMostAttempts) + " tries; shorten them or enlarge the picture");
    scene = empty;
  } while (!draw_pair(scene, rng));
  for (int64_t i = 0; i < options_.number_of_distractors(); ++i) draw_distractor(scene, static_cast<int>(2 + i), rng);
  picture.paddles = std::move(scene.paddles);
  mark(picture, rng);
  render(picture);
  return picture;
}

}  // namespace tactus
