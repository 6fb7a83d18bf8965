#include "dashboard/samples.hpp"

#include <fmt/format.h>

#include "console/connections.hpp"
#include "console/kafka_look.hpp"
#include "console/partition_view.hpp"
#include "console/topics_seen.hpp"
#include "engine/topic_directory.hpp"

namespace pawl::dashboard {
namespace {

using std::chrono::duration;

/// How long an end waits for a look.
constexpr std::chrono::milliseconds kFarewell{1000};

ledger::Instant by_the_clock(std::chrono::steady_clock::time_point time) {
  const auto ago = std::chrono::steady_clock::now() - time;
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now() - ago);
}

/// Nullopt: the counters were reset in between.
std::optional<double> rate_between(const Sample& before, const Sample& after,
                                   std::chrono::steady_clock::duration time) {
  const auto seconds = duration<double>(time).count();
  if (before.base_offset != after.base_offset || after.processed < before.processed || seconds <= 0)
    return std::nullopt;
  return static_cast<double>(after.processed - before.processed) / seconds;
}

}  // namespace

void Samples::add(Look look) {
  const std::scoped_lock lock(mutex_);
  looks_.push_back(std::move(look));
  while (looks_.size() > kMost)
    looks_.pop_front();
}

void Samples::clear() {
  const std::scoped_lock lock(mutex_);
  looks_.clear();
}

bool Samples::fresh() const {
  return !looks_.empty() && std::chrono::steady_clock::now() - looks_.back().at < kFresh;
}

Samples::View Samples::view() const {
  const std::scoped_lock lock(mutex_);
  View view;
  if (looks_.empty())
    return view;
  if (!fresh()) {
    view.problems = {
        "PostgreSQL or Kafka has not responded for more than a minute. Lags and rates are "
        "unknown."};
    return view;
  }
  for (const auto& [partition, last] : looks_.back().partitions)
    view.courses[partition] = course_of(partition);
  view.total = total();
  view.whole = looks_.back().whole;
  view.problems = looks_.back().problems;
  return view;
}

Samples::Course Samples::course(const TopicPartition& partition) const {
  const std::scoped_lock lock(mutex_);
  return fresh() && looks_.back().partitions.contains(partition) ? course_of(partition) : Course{};
}

/// Of one that the last look saw.
Samples::Course Samples::course_of(const TopicPartition& partition) const {
  Course course;
  const Sample* before = nullptr;
  const Look* before_look = nullptr;
  const Sample* first = nullptr;
  const Look* first_look = nullptr;
  for (const auto& look : looks_) {
    const auto found = look.partitions.find(partition);
    if (found == look.partitions.end())
      continue;
    const auto& sample = found->second;
    course.lags.push_back(sample.lag);
    if (before != nullptr)
      course.rates.push_back(rate_between(*before, sample, look.at - before_look->at));
    before = &sample;
    before_look = &look;
    if (first == nullptr || first->base_offset != sample.base_offset) {
      first = &sample;
      first_look = &look;
    }
  }
  if (first != before) {
    course.rate = rate_between(*first, *before, before_look->at - first_look->at);
    course.period = std::chrono::round<std::chrono::seconds>(before_look->at - first_look->at);
  }
  const auto& last = looks_.back();
  course.at = by_the_clock(last.at);
  course.lag = course.lags.back();
  if (const auto end = last.ends.find(partition); end != last.ends.end())
    course.end = end->second;
  if (const auto end = last.ends_before.find(partition); end != last.ends_before.end())
    course.end_before = end->second;
  return course;
}

Samples::Course Samples::total() const {
  Course total;
  const Look* before = nullptr;
  for (const auto& look : looks_) {
    std::optional<std::int64_t> lag =
        look.partitions.empty() || !look.whole ? std::nullopt : std::optional{0L};
    std::optional<double> rate;
    for (const auto& [partition, sample] : look.partitions) {
      lag = lag && sample.lag ? std::optional(*lag + *sample.lag) : std::nullopt;
      if (before == nullptr)
        continue;
      const auto earlier = before->partitions.find(partition);
      if (earlier == before->partitions.end())
        continue;
      if (const auto one = rate_between(earlier->second, sample, look.at - before->at))
        rate = rate.value_or(0) + *one;
    }
    total.lags.push_back(lag);
    if (before != nullptr)
      total.rates.push_back(rate);
    before = &look;
  }
  total.at = by_the_clock(looks_.back().at);
  total.lag = total.lags.back();
  if (looks_.size() > 1) {
    total.period = std::chrono::round<std::chrono::seconds>(looks_.back().at - looks_.front().at);
    total.rate = total.rates.back();
  }
  return total;
}

Sampler::Sampler(const Options& options, Samples& samples)
    : options_(options), samples_(samples), thread_([this] { run(); }) {}

Sampler::~Sampler() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

bool Sampler::finish() {
  std::unique_lock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
  return changed_.wait_for(lock, kFarewell, [this] { return ended_; });
}

void Sampler::wanted() {
  const std::scoped_lock lock(mutex_);
  wanted_at_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

void Sampler::run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (!wanted_at_ || std::chrono::steady_clock::now() - *wanted_at_ >= kUnwantedAfter) {
      wanted_at_.reset();
      lock.unlock();
      session_.reset();
      client_.reset();
      samples_.clear();
      lock.lock();
      changed_.wait(lock, [this] { return ending_ || wanted_at_; });
      continue;
    }
    lock.unlock();
    look();
    lock.lock();
    changed_.wait_for(lock, Samples::kInterval, [this] { return ending_; });
  }
  ended_ = true;
  changed_.notify_all();
}

void Sampler::look() {
  try {
    samples_.add(seen());
  } catch (const std::exception& error) {
    session_.reset();
    Samples::Look failed;
    failed.whole = false;
    failed.problems = {fmt::format(
        "PostgreSQL or Kafka could not be read, so lags and rates are unknown: {}", error.what())};
    samples_.add(std::move(failed));
  }
}

Samples::Look Sampler::seen() {
  Samples::Look look;
  if (!session_)
    session_ = cli::connect_database(options_);
  const auto consumer = ledger::find_consumer(*session_, options_.postgres.schema,
                                              options_.kafka.cluster, options_.kafka.group);
  if (!consumer)
    return look;
  const auto rows = ledger::read_register(*session_, options_.postgres.schema, consumer->id, "");
  // Kafka is read after this, so a lag is rather too large than too small.
  look.at = std::chrono::steady_clock::now();
  std::vector<TopicPartition> partitions;
  partitions.reserve(rows.size());
  std::vector<const ledger::RegisterRow*> asked;
  asked.reserve(rows.size());
  for (const auto& row : rows) {
    partitions.push_back(row.partition);
    asked.push_back(&row);
  }
  auto kafka = cli::look_at_kafka(options_, client_, partitions, true);
  cli::look_back(kafka, client_.get(), asked);
  look.ends_before = kafka.ends_before;
  for (const auto& row : rows) {
    Sample sample{row.processed(), row.base_offset, std::nullopt};
    if (const auto end = kafka.end_of(row.partition)) {
      look.ends[row.partition] = *end;
      sample.lag = cli::lag_of(&row, end);
    }
    look.partitions[row.partition] = sample;
  }
  if (!kafka.problem.empty()) {
    look.problems = {"The ends of the log in Kafka could not be read, so lags are unknown: " +
                     kafka.problem};
    return look;
  }
  const auto topics = cli::topics_seen(options_, kafka, {partitions.begin(), partitions.end()});
  look.whole = topics.refused.empty() && topics.ambiguous.empty() && topics.unstored.empty();
  for (const auto& topic : topics.missing)
    look.problems.push_back(cli::missing_topic_text(topic));
  for (const auto& topic : topics.gone)
    look.problems.push_back(cli::gone_topic_text(topic));
  for (const auto& unstored : topics.unstored)
    look.problems.push_back(cli::unstored_text(unstored));
  for (const auto& [topic, why] : topics.refused)
    look.problems.push_back(engine::topic_refused_text(topic, why) + ".");
  for (const auto& [topic, why] : topics.ambiguous)
    look.problems.push_back(why + ".");
  return look;
}

}  // namespace pawl::dashboard
