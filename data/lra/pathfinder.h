// Pathfinder (Linsley et al. 2018) as in the Long Range Arena: two dashed curves ("snakes") of equal length among short
// distractors; two markers; the question is whether both lie on the same curve.
//
// A snake is a row of paddles, strokes of paddle_length. With d the direction of the last paddle and p its pivot, the
// next pivot is p + (length + 2 margin) d; the next head is an integer point on the circle of radius length + margin
// around it, drawn with weight max(0, cos(min(continuity |angle to d|, pi/2)))^2; the stroke goes from the head back
// towards the pivot. A stroke widened by the margin keeps clear of everything but its predecessor. Both snakes grow in
// turn; a paddle that finds no place within its tries begins the pair anew. Distractors follow the same rule and are
// left out where they find no place.
//
// Strokes are anti-aliased, composed by maximum, and brighter in distractors (contrast 2.0 against 1.5) as in the
// published generator, unless equal_contrast is set. Markers have intensity 1. Pictures are scaled to 0..255.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/rng.h"

namespace tactus {

struct PathfinderOptions {
  int64_t train = 160000, valid = 20000, test = 20000;
  int64_t size = 32;              ///< pixels a side
  int64_t contour_length = 14;    ///< paddles of a snake: 14 hard, 9 intermediate, 6 easy
  int64_t distractor_length = 0;  ///< 0: contour_length / 3
  int64_t distractors = -1;       ///< -1: 20 / distractor_length
  bool equal_contrast = false;
  double continuity = 1;
  int64_t seed_distance = 7;
  int64_t padding = 1, paddle_length = 2, paddle_margin = 1;
  double paddle_thickness = 0.5, marker_radius = 1.5;
  int64_t antialias = 2;
  int64_t paddle_retries = 2, distractor_retries = 4;
  int64_t seed = 1;
  int64_t threads = 0;
  void visit(ConfigVisitor& v);
  int64_t paddles_of_distractor() const;
  int64_t number_of_distractors() const;
};

struct PixelPoint {
  int64_t y = 0, x = 0;
  bool operator==(const PixelPoint&) const = default;
};

/// One stroke. `anchor` is the end it is drawn from, `degrees` the direction it is drawn in; a snake's first paddle is
/// anchored at its tail, the others at their heads.
struct Paddle {
  int snake = 0;  ///< 0, 1: the two long ones; distractors from 2
  PixelPoint anchor;
  int degrees = 0;  ///< 0: to the right, 90: down
};

struct PathfinderPicture {
  std::vector<uint8_t> pixels;  ///< [size, size]
  int label = 0;                ///< 1: both markers on one snake
  PixelPoint markers[2];        ///< the tail of a snake, and the head of the same or the other one
  std::vector<Paddle> paddles;  ///< in the order of placing
  int64_t attempts = 0;         ///< pairs of snakes begun
};

class PathfinderGenerator {
 public:
  /// ConfigError when the options contradict one another.
  explicit PathfinderGenerator(const PathfinderOptions& options);
  /// Picture number `index` of the seed: a pure function of options and index, callable from many threads. ConfigError
  /// when the snakes do not fit into the picture.
  PathfinderPicture draw(int64_t index) const;
  /// Intensities of strokes alone, contrast included, [size, size]; may exceed 1.
  std::vector<float> ink(const std::vector<Paddle>& paddles) const;
  /// Pixels that the paddle widened by the margin covers.
  std::vector<PixelPoint> covered(const Paddle& paddle) const;

 private:
  /// A stroke in one direction, as a small picture around its anchor.
  struct Stroke {
    std::vector<float> ink;
    std::vector<PixelPoint> covered;
  };
  struct Scene;
  struct Snake;
  Stroke make_stroke(int degrees) const;
  bool is_clear(const Scene& scene, const Paddle& paddle, int exempt) const;
  void place(Scene& scene, const Paddle& paddle) const;
  bool begin(Scene& scene, Snake& snake, const Paddle& paddle) const;
  bool begin_distractor(Scene& scene, Snake& snake, Rng& rng) const;
  bool extend(Scene& scene, Snake& snake, Rng& rng) const;
  bool draw_pair(Scene& scene, Rng& rng) const;
  void draw_distractor(Scene& scene, int number, Rng& rng) const;
  void mark(PathfinderPicture& picture, Rng& rng) const;
  void render(PathfinderPicture& picture) const;

  PathfinderOptions options_;
  int64_t reach_;  // pixels from an anchor to the edge of its stroke's picture
  std::vector<PixelPoint> margin_disc_;
  std::vector<Stroke> strokes_;  // by degrees
};

/// Writes {train,valid,test}-{images-idx3,labels-idx1}-ubyte, the format of MNIST, and pathfinder.yaml, the options, to
/// `folder`.
void generate_pathfinder(const PathfinderOptions& options, const std::string& folder);

}  // namespace tactus
