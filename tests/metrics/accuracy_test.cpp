#include "train/metrics/accuracy.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/metrics/corpus.h"

namespace tactus {
namespace {

using testing::Lines;
using testing::message_of;

TEST(Accuracy, ExactMatchComparesWords) {
  EXPECT_TRUE(exact_match("turn  on\u00a0the light ", "turn on the light"));
  EXPECT_TRUE(exact_match("", " "));
  EXPECT_FALSE(exact_match("Turn on", "turn on"));
  EXPECT_FALSE(exact_match("turn on", "turn on the"));
  EXPECT_FALSE(exact_match("turn on", "turnon"));
}

TEST(Accuracy, FirstTokenIgnoresTheRest) {
  EXPECT_TRUE(first_token_match("play song", " play  radio now"));
  EXPECT_TRUE(first_token_match("", ""));
  EXPECT_FALSE(first_token_match("player", "play"));
  EXPECT_FALSE(first_token_match("", "play"));
  EXPECT_FALSE(first_token_match("play", "  "));
}

TEST(Accuracy, Corpus) {
  const Lines hyp = {"play song", "stop", "", "volume up"}, ref = {"play song", "stop now", "", "mute"};
  const AccuracyCounts exact = exact_match_accuracy(hyp, ref), first = first_token_accuracy(hyp, ref);
  EXPECT_EQ(exact.detail(), "2 of 4 correct");
  EXPECT_EQ(exact.fraction(), 0.5);
  EXPECT_EQ(first.detail(), "3 of 4 correct");
  EXPECT_EQ(first.fraction(), 0.75);
}

TEST(Accuracy, RefusesWhatIsNotParallel) {
  EXPECT_EQ(message_of<DataError>([] {
              exact_match_accuracy({"a", "b"}, {"a"});
            }),
            "accuracy: 2 hypotheses but 1 references; they must be equally many");
  EXPECT_EQ(message_of<DataError>([] { first_token_accuracy({"\xff"}, {"a"}); }),
            "first_token_accuracy: hypothesis line 1: invalid UTF-8 at byte 1; convert the text to UTF-8");
}

}  // namespace
}  // namespace tactus
