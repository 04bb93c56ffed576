#include "train/metrics/bleu.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/metrics/corpus.h"

// All expected values come from sacreBLEU 2.6.0 (BLEU.corpus_score, BLEU.sentence_score with effective_order, and its
// tokenizers), printed in full.

namespace tactus {
namespace {

using testing::kHypotheses;
using testing::kReferences;
using testing::kSecondReferences;
using testing::Lines;
using testing::message_of;

std::string joined(const Lines& tokens) {
  std::string out;
  for (const auto& token : tokens) out += (out.empty() ? "" : " ") + token;
  return out;
}

std::string upper_ascii_and_umlauts(std::string s) {
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] >= 'a' && s[i] <= 'z') s[i] = static_cast<char>(s[i] - 32);
    // U+00E0..U+00FE are C3 A0..C3 BE; upper case is 0x20 below.
    if (s[i] == '\xC3' && static_cast<unsigned char>(s[i + 1]) >= 0xA0) s[i + 1] = static_cast<char>(s[i + 1] - 0x20);
  }
  return s;
}

const std::pair<const char*, const char*> k13aCases[] = {
    {"Hello, world!", "Hello , world !"},
    {"It costs 1,000.50 euros.", "It costs 1,000.50 euros ."},
    {"1,000,000 and 3.14, or .5 and 5.", "1,000,000 and 3.14 , or . 5 and 5 ."},
    {"a...b ..., ,.", "a . . . b . . . , , ."},
    {"pages 10-20 and x-y, -5, 1-2-3", "pages 10 - 20 and x-y , -5 , 1 - 2 - 3"},
    {"He said &quot;no&quot; &amp; left &lt;now&gt;", "He said \" no \" & left < now >"},
    {"&amp;lt;b&amp;gt; &amp;quot;", "< b > & quot ;"},
    {"an <skipped> word<skipped>s", "an words"},
    {"line-\nbreak and\nnew line-\n", "linebreak and new line-"},
    {"Übergrößen kosten 5,5€ – “wirklich”?", "Übergrößen kosten 5,5€ – “wirklich” ?"},
    {"don't 'quote' rock'n'roll", "don't 'quote' rock'n'roll"},
    {"你好,世界。123,abc", "你好 , 世界。123 , abc"},
    {"a\u00a0b\u2009c\u3000d", "a b c d"},
    {"C++/C# & x_y [z] {q} ~^`| \\ $5 50% a*b=c <d> e@f.g",
     "C + + / C # & x _ y [ z ] { q } ~ ^ ` | \\ $ 5 50 % a * b = c < d > e @ f . g"},
    {"٣.١٤ 3.٣", "٣ . ١٤ 3 . ٣"},
    {"日.本", "日 . 本"},
    {"", ""},
    {"   ", ""},
    {"U.S.A. e.g. 7.", "U . S . A . e . g . 7 ."},
    {"«Да», — сказал он.", "«Да» , — сказал он ."},
    {"2.,3 4,.5", "2 . , 3 4 , . 5"},
    {"🎉!🎉", "🎉 ! 🎉"},
    {"'tis '90s 90's.5", "'tis '90s 90's . 5"},
};

TEST(BleuTokenizer, Mteval13a) {
  for (const auto& [input, expected] : k13aCases) {
    EXPECT_EQ(joined(bleu_tokenize(input, BleuTokenizer::k13a)), expected) << "input: " << input;
  }
}

TEST(BleuTokenizer, NoneSplitsAtUnicodeSpaceOnly) {
  EXPECT_EQ(bleu_tokenize(" Hi, du!\tda\u00a0x  &amp; ", BleuTokenizer::kNone),
            (Lines{"Hi,", "du!", "da", "x", "&amp;"}));
  EXPECT_EQ(bleu_tokenize("zero\u200bwidth", BleuTokenizer::kNone).size(), 1u);
}

TEST(BleuTokenizer, CharTakesCodePointsWithoutSpace) {
  EXPECT_EQ(bleu_tokenize("ü, 你\u3000a ", BleuTokenizer::kChar), (Lines{"ü", ",", "你", "a"}));
}

TEST(BleuTokenizer, Names) {
  for (const char* name : {"13a", "none", "char"}) EXPECT_STREQ(bleu_tokenizer_name(bleu_tokenizer(name)), name);
  EXPECT_EQ(message_of<ConfigError>([] { bleu_tokenizer("14a"); }),
            "bleu: unknown tokenizer '14a'; known: 13a, none, char");
}

struct CorpusCase {
  const char* name;
  Lines hypotheses;
  std::vector<Lines> references;
  BleuOptions options;
  double score;
  const char* detail;
};

std::vector<CorpusCase> corpus_cases() {
  const Lines &hyp = kHypotheses, &ref = kReferences;
  Lines one_empty = hyp, one_empty_ref = ref, upper;
  one_empty[0] = one_empty_ref[0] = "";
  for (const auto& line : hyp) upper.push_back(upper_ascii_and_umlauts(line));
  const BleuOptions none{BleuTokenizer::kNone}, chars{BleuTokenizer::kChar};
  const BleuOptions lower{BleuTokenizer::k13a, true};
  return {
      {"13a",
       hyp,
       {ref},
       {},
       53.32264676601877,
       "90.0/68.6/50.0/32.0 (BP = 0.951 ratio = 0.952 hyp_len = 40 ref_len = 42)"},
      {"none",
       hyp,
       {ref},
       none,
       39.021507291884326,
       "74.2/50.0/33.3/18.8 (BP = 1.000 ratio = 1.000 hyp_len = 31 ref_len = 31)"},
      {"char",
       hyp,
       {ref},
       chars,
       82.30947424513808,
       "92.6/88.5/84.1/79.3 (BP = 0.957 ratio = 0.958 hyp_len = 136 ref_len = 142)"},
      {"two references",
       hyp,
       {ref, kSecondReferences},
       {},
       58.345514717769696,
       "97.5/74.3/50.0/32.0 (BP = 1.000 ratio = 1.026 hyp_len = 40 ref_len = 39)"},
      {"upper, lowercase on",
       upper,
       {ref},
       lower,
       53.32264676601877,
       "90.0/68.6/50.0/32.0 (BP = 0.951 ratio = 0.952 hyp_len = 40 ref_len = 42)"},
      {"upper, lowercase off",
       upper,
       {ref},
       {},
       3.910823937971784,
       "30.0/5.7/1.7/1.0 (BP = 0.951 ratio = 0.952 hyp_len = 40 ref_len = 42)"},
      {"an empty hypothesis",
       one_empty,
       {ref},
       {},
       37.69417432651307,
       "90.6/67.9/45.8/25.0 (BP = 0.732 ratio = 0.762 hyp_len = 32 ref_len = 42)"},
      {"an empty reference",
       hyp,
       {one_empty_ref},
       {},
       41.217462104557846,
       "72.5/54.3/36.7/20.0 (BP = 1.000 ratio = 1.143 hyp_len = 40 ref_len = 35)"},
      {"only empty hypotheses",
       {"", ""},
       {{"a b", "c"}},
       {},
       0.0,
       "0.0/0.0/0.0/0.0 (BP = 0.000 ratio = 0.000 hyp_len = 0 ref_len = 3)"},
      {"all empty", {""}, {{""}}, {}, 0.0, "0.0/0.0/0.0/0.0 (BP = 1.000 ratio = 0.000 hyp_len = 0 ref_len = 0)"},
      {"no 3-grams",
       {"the cat"},
       {{"the cat"}},
       {},
       0.0,
       "100.0/100.0/0.0/0.0 (BP = 1.000 ratio = 1.000 hyp_len = 2 ref_len = 2)"},
      {"no match",
       {"a b c d e"},
       {{"v w x y z"}},
       {},
       0.0,
       "0.0/0.0/0.0/0.0 (BP = 1.000 ratio = 1.000 hyp_len = 5 ref_len = 5)"},
      {"smoothing of 2, 3, 4",
       {"the cat sat on mat here"},
       {{"the dog sat at mat there now"}},
       {},
       9.042266054940777,
       "50.0/10.0/6.2/4.2 (BP = 0.846 ratio = 0.857 hyp_len = 6 ref_len = 7)"},
      {"smoothing of 3, 4",
       {"a b x c d y"},
       {{"a b z c d w v"}},
       {},
       19.43309443637608,
       "66.7/40.0/12.5/8.3 (BP = 0.846 ratio = 0.857 hyp_len = 6 ref_len = 7)"},
      {"longer than the reference",
       {"a b c d e f g"},
       {{"a b c d e"}},
       {},
       61.47881529512643,
       "71.4/66.7/60.0/50.0 (BP = 1.000 ratio = 1.400 hyp_len = 7 ref_len = 5)"},
      {"clipped repeats",
       {"the the the the the the the"},
       {{"the cat is on the mat"}, {"there is a cat on the mat"}},
       {},
       7.809849842300637,
       "28.6/8.3/5.0/3.1 (BP = 1.000 ratio = 1.000 hyp_len = 7 ref_len = 7)"},
      {"equally close references",
       {"a b c d"},
       {{"a b c d e"}, {"a b c"}},
       {},
       100.0,
       "100.0/100.0/100.0/100.0 (BP = 1.000 ratio = 1.333 hyp_len = 4 ref_len = 3)"},
  };
}

TEST(CorpusBleu, EqualsSacrebleu) {
  for (const auto& c : corpus_cases()) {
    const BleuScore result = corpus_bleu(c.hypotheses, c.references, c.options);
    EXPECT_NEAR(result.score, c.score, 1e-9) << c.name;
    EXPECT_EQ(result.detail(), c.detail) << c.name;
  }
}

TEST(CorpusBleu, Parts) {
  const BleuScore result = corpus_bleu(kHypotheses, kReferences);
  EXPECT_EQ(result.stats.correct, (std::array<int64_t, 4>{36, 24, 15, 8}));
  EXPECT_EQ(result.stats.total, (std::array<int64_t, 4>{40, 35, 30, 25}));
  EXPECT_NEAR(result.precisions[1], 68.57142857142857, 1e-12);
  EXPECT_NEAR(result.brevity_penalty, 0.951229424500714, 1e-14);
  EXPECT_EQ(result.signature, "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:tactus");
}

TEST(CorpusBleu, SignatureNamesTheOptions) {
  BleuOptions options{BleuTokenizer::kChar, true};
  EXPECT_EQ(corpus_bleu({"a"}, {Lines{"a"}, Lines{"b"}}, options).signature,
            "nrefs:2|case:lc|eff:no|tok:char|smooth:exp|version:tactus");
  EXPECT_EQ(sentence_bleu("a", {"a"}).signature, "nrefs:1|case:mixed|eff:yes|tok:13a|smooth:exp|version:tactus");
}

TEST(CorpusBleu, RefusesWhatIsNotParallel) {
  EXPECT_EQ(message_of<DataError>([] {
              corpus_bleu({"a", "b"}, Lines{"a"});
            }),
            "bleu: 2 hypotheses but 1 references; they must be equally many");
  EXPECT_EQ(message_of<DataError>([] { corpus_bleu({}, Lines{}); }), "bleu: nothing to score, there are no hypotheses");
  EXPECT_EQ(message_of<DataError>([] { corpus_bleu({"a"}, std::vector<Lines>{}); }),
            "bleu: at least one set of references is needed, got none");
  EXPECT_EQ(message_of<DataError>([] {
              corpus_bleu({"a", "b\xff"}, Lines{"a", "b"});
            }),
            "bleu: hypothesis line 2: invalid UTF-8 at byte 2; convert the text to UTF-8");
}

TEST(SentenceBleu, EqualsSacrebleuWithEffectiveOrder) {
  EXPECT_NEAR(sentence_bleu("the cat", {"the cat"}).score, 100.0, 1e-9);
  EXPECT_NEAR(sentence_bleu("the", {"the cat sat"}).score, 13.533528323661276, 1e-9);
  EXPECT_NEAR(sentence_bleu("a b c", {"b c a"}).score, 62.996052494743665, 1e-9);
  EXPECT_NEAR(sentence_bleu(kHypotheses[0], {kReferences[0]}).score, 70.71067811865478, 1e-9);
  EXPECT_NEAR(sentence_bleu(kHypotheses[3], {kReferences[3], kSecondReferences[3]}).score, 47.7189707581088, 1e-9);
  EXPECT_EQ(sentence_bleu("", {"x"}).score, 0.0);
  EXPECT_EQ(sentence_bleu("x", {"y"}).score, 0.0);
  EXPECT_THROW(sentence_bleu("x", {}), DataError);
}

}  // namespace
}  // namespace tactus
