#include "train/metrics/wer.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/metrics/corpus.h"

// Expected values come from jiwer 4.0.0 (process_words and process_characters with their default transforms). The split
// into substitutions, deletions and insertions depends on how ties are broken, so equality here pins that too.

namespace tactus {
namespace {

using testing::kHypotheses;
using testing::kReferences;
using testing::Lines;
using testing::message_of;

struct EditCase {
  const char *hypothesis, *reference;
  EditCounts words, characters;  // hits, substitutions, deletions, insertions
};

const EditCase kCases[] = {
    {"the cat sat mat", "the cat sat on the mat", {4, 0, 2, 0}, {15, 0, 7, 0}},
    {"b c", "a b", {0, 2, 0, 0}, {1, 2, 0, 0}},
    {"b c x d f g h", "a b c d e f", {3, 2, 1, 2}, {6, 5, 0, 2}},
    {"hello", "hello world", {1, 0, 1, 0}, {5, 0, 6, 0}},
    {"hello big wide world", "hello", {1, 0, 0, 3}, {5, 0, 0, 15}},
    {"sitting kitten", "kitten sitting", {1, 0, 1, 1}, {9, 4, 1, 1}},
    {"noise in silence", "", {0, 0, 0, 3}, {0, 0, 0, 16}},
    {"", "", {0, 0, 0, 0}, {0, 0, 0, 0}},
    {"", "some words", {0, 0, 2, 0}, {0, 0, 10, 0}},
    {"hello world", "Hello, World.", {0, 2, 0, 0}, {9, 2, 2, 0}},
    {"two spaces here", "  two  spaces\t\there ", {3, 0, 0, 0}, {14, 1, 2, 0}},
    {"tab word one", "tab\tword one", {1, 1, 0, 1}, {11, 1, 0, 0}},
    {"no break space", "no\u00a0break space", {1, 1, 0, 1}, {13, 1, 0, 0}},
    {"fuenfundzwanzig Euro", "fünfundzwanzig Euro", {1, 1, 0, 0}, {18, 1, 0, 1}},
    {"你 好世界", "你好 世界", {0, 2, 0, 0}, {4, 0, 1, 1}},
    {"éte", "e\u0301te", {0, 1, 0, 0}, {2, 1, 1, 0}},
    {"b a b a b a", "a b a b a b", {5, 0, 1, 1}, {9, 0, 2, 2}},
    {"four three two one", "one two three four", {1, 2, 1, 1}, {9, 5, 4, 4}},
    {"a quick brown dog jumps over lazy foxes now",
     "the quick brown fox jumps over the lazy dog",
     {4, 5, 0, 0},
     {29, 12, 2, 2}},
};

void expect_counts(const EditCounts& actual, const EditCounts& expected, const std::string& what) {
  EXPECT_EQ(actual.hits, expected.hits) << what;
  EXPECT_EQ(actual.substitutions, expected.substitutions) << what;
  EXPECT_EQ(actual.deletions, expected.deletions) << what;
  EXPECT_EQ(actual.insertions, expected.insertions) << what;
}

TEST(Wer, SegmentsEqualJiwer) {
  for (const auto& c : kCases) {
    const std::string what = std::string("'") + c.hypothesis + "' against '" + c.reference + "'";
    expect_counts(word_edits(c.hypothesis, c.reference), c.words, "words of " + what);
    expect_counts(character_edits(c.hypothesis, c.reference), c.characters, "characters of " + what);
  }
}

TEST(Wer, CorpusEqualsJiwer) {
  const EditCounts words = corpus_word_edits(kHypotheses, kReferences);
  expect_counts(words, {23, 6, 2, 2}, "corpus words");
  EXPECT_NEAR(words.rate(), 0.3225806451612903, 1e-15);
  EXPECT_EQ(words.detail("words"), "6 substitutions, 2 deletions, 2 insertions, 31 reference words");
  const EditCounts characters = corpus_character_edits(kHypotheses, kReferences);
  expect_counts(characters, {150, 4, 14, 8}, "corpus characters");
  EXPECT_NEAR(characters.rate(), 0.15476190476190477, 1e-15);
}

TEST(Wer, EmptyReferences) {
  EXPECT_EQ(word_edits("noise in silence", "").rate(), 3.0);
  EXPECT_EQ(word_edits("", "").rate(), 0.0);
  EXPECT_EQ(corpus_word_edits({"x y", ""}, {"", ""}).rate(), 2.0);
  const EditCounts mixed = corpus_word_edits({"x y", "a c"}, {"", "a b c"});
  expect_counts(mixed, {2, 0, 1, 2}, "one empty reference");
  EXPECT_EQ(mixed.rate(), 1.0);
}

TEST(Wer, LongSegmentNeedsLittleMemory) {
  // 9 million cells; only two rows of them are kept. First and last symbols differ, so that no equal ends are cut.
  std::u32string reference(3000, U'a'), hypothesis(3000, U'a');
  for (size_t i = 0; i < reference.size(); i += 3) reference[i] = U'b';
  for (size_t i = 0; i < hypothesis.size(); i += 3) hypothesis[i] = U'c';
  reference.back() = U'x';
  const EditCounts counts = count_edits(reference, hypothesis);
  EXPECT_EQ(counts.edits(), 1001);
  EXPECT_EQ(counts.reference_length(), 3000);
}

TEST(Wer, RefusesWhatIsNotParallel) {
  EXPECT_EQ(message_of<DataError>([] {
              corpus_word_edits({"a"}, Lines{"a", "b"});
            }),
            "wer: 1 hypotheses but 2 references; they must be equally many");
  EXPECT_EQ(message_of<DataError>([] { corpus_character_edits({"a"}, Lines{"\xC3"}); }),
            "cer: reference line 1: invalid UTF-8 at byte 1; convert the text to UTF-8");
  EXPECT_THROW(corpus_word_edits({}, Lines{}), DataError);
}

}  // namespace
}  // namespace tactus
