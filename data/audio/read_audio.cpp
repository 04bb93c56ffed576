#include "data/audio/read_audio.h"

#include <samplerate.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <memory>
#include <utility>

#include "core/error.h"
#include "data/audio/byte_range.h"
#include "data/audio/container_check.h"
#include "data/features.h"

namespace tactus {
namespace {

constexpr int64_t kBlockFrames = 1 << 14;
constexpr int kMaxChannels = 64;
constexpr int64_t kMaxSamples = int64_t{1} << 29;
/// How far a part may reach beyond the end; Kaldi's tolerance.
constexpr double kOvershootSeconds = 0.5;
constexpr double kMaxSeconds = 1e8, kMaxSpeed = 100;

std::string seconds(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g s", value);
  return text;
}

[[noreturn]] void refuse_length(const std::string& name) {
  throw DataError(name + ": more than " + std::to_string(kMaxSamples) +
                  " samples, too long for one item; refer to parts of it (start and duration)");
}

/// What libsndfile reads from. Its callbacks are C, so an exception waits until they have returned.
struct Source {
  const ByteRange& bytes;
  int64_t at = 0;
  std::exception_ptr error;
};

sf_count_t source_size(void* user) { return static_cast<Source*>(user)->bytes.size(); }
sf_count_t source_tell(void* user) { return static_cast<Source*>(user)->at; }
sf_count_t source_write(const void*, sf_count_t, void*) { return 0; }

sf_count_t source_seek(sf_count_t offset, int whence, void* user) {
  auto& source = *static_cast<Source*>(user);
  const int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? source.at : source.bytes.size();
  return source.at = std::clamp<int64_t>(offset, -base, source.bytes.size() - base) + base;
}

sf_count_t source_read(void* to, sf_count_t count, void* user) {
  auto& source = *static_cast<Source*>(user);
  try {
    const int64_t got = source.bytes.read(to, count, source.at);
    source.at += got;
    return got;
  } catch (...) {
    source.error = std::current_exception();
    return 0;
  }
}

struct CloseSound {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

/// A sound file under decoding.
class Sound {
 public:
  explicit Sound(const ByteRange& bytes) : source_{bytes, 0, nullptr}, name_(bytes.name()) {
    SF_VIRTUAL_IO io{source_size, source_seek, source_read, source_write, source_tell};
    file_.reset(sf_open_virtual(&io, SFM_READ, &info_, &source_));
    check();
    // The reason lies in a variable that all threads share, so it is not asked for.
    if (!file_) throw DataError(name_ + ": cannot read as audio: its header is damaged or of an unknown kind");
    if (info_.channels < 1 || info_.channels > kMaxChannels || info_.samplerate < 1000 || info_.samplerate > 768000) {
      throw DataError(name_ + ": " + std::to_string(info_.channels) + " channels at " +
                      std::to_string(info_.samplerate) + " Hz; expected 1 to 64 channels at 1 to 768 kHz");
    }
  }
  int rate() const { return info_.samplerate; }
  /// -1 where the file does not say.
  int64_t frames() const { return info_.frames == SF_COUNT_MAX ? -1 : info_.frames; }

  void seek(int64_t frame) {
    if (frame == 0) return;
    const sf_count_t reached = sf_seek(file_.get(), frame, SEEK_SET);
    check();
    if (reached != frame) throw DataError(name_ + ": damaged: cannot go to sample " + std::to_string(frame));
  }
  /// Up to `count` frames, fewer at the end, the first `skip` of them left out; channels averaged, scaled to the range
  /// of 16-bit integers.
  std::vector<float> read_mono(int64_t skip, int64_t count);

 private:
  void check() const {
    if (source_.error) std::rethrow_exception(source_.error);
  }
  Source source_;
  std::string name_;
  SF_INFO info_{};
  std::unique_ptr<SNDFILE, CloseSound> file_;
};

std::vector<float> Sound::read_mono(int64_t skip, int64_t count) {
  const int channels = info_.channels;
  std::vector<float> mono;
  // The header's frame count is not trusted with memory: it grows with what was really read.
  std::vector<float> block(static_cast<size_t>(kBlockFrames) * channels);
  const double scale = 32768.0 / channels;
  int64_t frames = 0;
  while (frames < count) {
    const sf_count_t got = sf_readf_float(file_.get(), block.data(), std::min(kBlockFrames, count - frames));
    if (got <= 0) break;
    for (int64_t i = std::clamp<int64_t>(skip - frames, 0, got); i < got; ++i) {
      double sum = 0;
      for (int c = 0; c < channels; ++c) sum += block[static_cast<size_t>(i) * channels + c];
      if (!std::isfinite(sum))
        throw DataError(name_ + ": sample " + std::to_string(mono.size()) + " is not a finite number");
      mono.push_back(static_cast<float>(sum * scale));
    }
    frames += got;
    if (static_cast<int64_t>(mono.size()) > kMaxSamples) refuse_length(name_);
  }
  check();
  if (sf_error(file_.get()) != SF_ERR_NO_ERROR) {
    std::string reason = sf_strerror(file_.get());
    while (!reason.empty() && (reason.back() == '.' || reason.back() == '\n')) reason.pop_back();
    throw DataError(name_ + ": damaged after " + std::to_string(mono.size()) + " samples: " + reason);
  }
  return mono;
}

/// The samples of the part of `media`, at the file's rate.
std::vector<float> read_part(const MediaRef& media, Sound& sound, int64_t seek_limit) {
  const std::string name = media.to_string();
  const double rate = sound.rate();
  const int64_t begin = std::llround(media.start_seconds * rate);
  int64_t count = media.duration_seconds < 0 ? -1 : std::llround(media.duration_seconds * rate);
  const auto overshoot = static_cast<int64_t>(kOvershootSeconds * rate);
  const auto beyond = [&](const char* edge, double at, int64_t frames) {
    return DataError(name + ": the part " + edge + " at " + seconds(at) + ", but the recording has " +
                     seconds(static_cast<double>(frames) / rate));
  };
  const double end = media.start_seconds + media.duration_seconds;
  const int64_t frames = sound.frames();
  if (frames >= 0) {
    if (begin > frames || (begin == frames && count > 0)) throw beyond("begins", media.start_seconds, frames);
    if (count > frames - begin + overshoot) throw beyond("ends", end, frames);
    count = count < 0 ? frames - begin : std::min(count, frames - begin);
    if (count > kMaxSamples) refuse_length(name);
  }
  const int64_t from = std::min(begin, seek_limit);
  sound.seek(from);
  const int64_t wanted = count < 0 ? kMaxSamples + 1 : count;
  std::vector<float> samples = sound.read_mono(begin - from, begin - from + wanted);
  const auto got = static_cast<int64_t>(samples.size());
  if (frames >= 0 && got < count)
    throw DataError(name + ": cut short: " + std::to_string(got) + " samples, expected " + std::to_string(count));
  if (frames < 0 && got == 0 && count != 0 && begin > 0) throw beyond("begins", media.start_seconds, begin);
  if (frames < 0 && got + overshoot < count) throw beyond("ends", end, begin + got);
  return samples;
}

/// With silence around.
std::vector<float> resample(std::vector<float> samples, double ratio, const std::string& name) {
  if (samples.empty()) return {};
  if (src_is_valid_ratio(ratio) == 0)
    throw DataError(name + ": cannot resample by a factor of " + std::to_string(ratio) + ", expected 1/256 to 256");
  const double length = std::round(static_cast<double>(samples.size()) * ratio);
  if (length > static_cast<double>(kMaxSamples)) refuse_length(name);
  // The library rounds the length down, at times by more than one; a little silence makes sure of the last sample.
  samples.resize(samples.size() + static_cast<size_t>(std::ceil(3 / ratio)));
  std::vector<float> out(static_cast<size_t>(length));
  SRC_DATA data{};
  data.data_in = samples.data();
  data.input_frames = static_cast<long>(samples.size());
  data.data_out = out.data();
  data.output_frames = static_cast<long>(out.size());
  data.src_ratio = ratio;
  if (int code = src_simple(&data, SRC_SINC_MEDIUM_QUALITY, 1); code != 0)
    throw DataError(name + ": cannot resample: " + src_strerror(code));
  if (data.output_frames_gen != data.output_frames)
    throw DataError(name + ": resampling gave " + std::to_string(data.output_frames_gen) + " samples, expected " +
                    std::to_string(data.output_frames));
  return out;
}

void check_part(const MediaRef& m) {
  const bool in_range = m.start_seconds >= 0 && m.start_seconds < kMaxSeconds && m.duration_seconds < kMaxSeconds &&
                        (m.duration_seconds >= 0 || m.duration_seconds == -1);
  if (!in_range) {
    throw DataError(m.path + ": a part that begins at " + seconds(m.start_seconds) + " and lasts " +
                    seconds(m.duration_seconds) + "; expected numbers from 0 on");
  }
  if (!(m.speed >= 1 / kMaxSpeed && m.speed <= kMaxSpeed))
    throw DataError(m.path + ": speed is " + std::to_string(m.speed) + ", expected 0.01 to 100");
}

}  // namespace

std::vector<float> read_audio(const MediaRef& media) {
  check_part(media);
  ByteRange bytes(media);
  TimeSpan part{media.start_seconds, media.start_seconds + media.duration_seconds};
  if (media.duration_seconds < 0) part.end = kMaxSeconds;
  const SoundContainer container = check_container(bytes, part);
  if (container.empty) {
    if (media.start_seconds == 0 && media.duration_seconds <= kOvershootSeconds) return {};
    throw DataError(media.to_string() + ": the recording has no samples");
  }
  bytes.end_at(container.end);
  // Libvorbis crashes on the way to a part when its tables are damaged. Decoding the first sample finds that out, with
  // an object of its own because positions are wrong after a part of a block has been read.
  const bool probe = container.seek_limit < std::numeric_limits<int64_t>::max() && media.start_seconds > 0;
  if (probe && Sound(bytes).read_mono(0, 1).empty())
    throw DataError(media.to_string() + ": damaged: its first sample cannot be decoded");
  Sound sound(bytes);
  std::vector<float> samples = read_part(media, sound, container.seek_limit);
  const double ratio = static_cast<double>(kSampleRate) / (sound.rate() * media.speed);
  return ratio == 1 ? samples : resample(std::move(samples), ratio, media.to_string());
}

std::vector<float> read_audio(const std::string& path) {
  MediaRef media;
  media.kind = MediaRef::Kind::audio, media.path = path;
  return read_audio(media);
}

}  // namespace tactus
