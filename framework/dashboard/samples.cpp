#include "dashboard/samples.hpp"

#include "console/connections.hpp"
#include "console/kafka_look.hpp"
#include "console/partition_view.hpp"
#include "pawl/errors.hpp"
#include "postgres/error.hpp"

namespace pawl::dashboard {
namespace {

using std::chrono::duration;

/// Nullopt: the counters began anew in between.
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

std::map<TopicPartition, Samples::Course> Samples::courses() const {
  const std::scoped_lock lock(mutex_);
  std::map<TopicPartition, Course> courses;
  if (looks_.empty())
    return courses;
  for (const auto& [partition, last] : looks_.back().partitions)
    courses[partition] = course_of(partition);
  return courses;
}

Samples::Course Samples::course(const TopicPartition& partition) const {
  const std::scoped_lock lock(mutex_);
  return looks_.empty() || !looks_.back().partitions.contains(partition) ? Course{}
                                                                         : course_of(partition);
}

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
  if (const auto end = looks_.back().ends.find(partition); end != looks_.back().ends.end())
    course.end = end->second;
  return course;
}

Samples::Course Samples::total() const {
  const std::scoped_lock lock(mutex_);
  Course total;
  const Look* before = nullptr;
  for (const auto& look : looks_) {
    std::optional<std::int64_t> lag = look.partitions.empty() ? std::nullopt : std::optional{0L};
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
  if (looks_.size() > 1) {
    total.period = std::chrono::round<std::chrono::seconds>(looks_.back().at - looks_.front().at);
    total.rate = total.rates.back();
  }
  return total;
}

std::string Samples::kafka_problem() const {
  const std::scoped_lock lock(mutex_);
  return looks_.empty() ? std::string{} : looks_.back().kafka_problem;
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
      lock.lock();
      changed_.wait(lock, [this] { return ending_ || wanted_at_; });
      continue;
    }
    lock.unlock();
    look();
    lock.lock();
    changed_.wait_for(lock, Samples::kInterval, [this] { return ending_; });
  }
}

void Sampler::look() {
  std::vector<ledger::RegisterRow> rows;
  Samples::Look look;
  try {
    if (!session_)
      session_ = cli::connect_database(options_);
    const auto consumer = ledger::find_consumer(*session_, options_.postgres.schema,
                                                options_.kafka.cluster, options_.kafka.group);
    if (!consumer)
      return;
    rows = ledger::read_register(*session_, options_.postgres.schema, consumer->id, "");
    // What Kafka says is younger than this, so a lag is rather too large than too small.
    look.at = std::chrono::steady_clock::now();
  } catch (const FatalError&) {  // pages tell it
    session_.reset();
    return;
  } catch (const postgres::Error&) {
    session_.reset();
    return;
  } catch (const postgres::InDoubt&) {
    session_.reset();
    return;
  } catch (const std::logic_error&) {  // rows of a later schema: pages tell it
    session_.reset();
    return;
  }
  std::vector<TopicPartition> partitions;
  partitions.reserve(rows.size());
  for (const auto& row : rows)
    partitions.push_back(row.partition);
  const auto kafka = cli::look_at_kafka(options_, client_, partitions);
  look.kafka_problem = kafka.problem;
  for (const auto& row : rows) {
    Sample sample{row.processed(), row.base_offset, std::nullopt};
    if (const auto end = kafka.end_of(row.partition)) {
      look.ends[row.partition] = *end;
      sample.lag = cli::lag_of(&row, end);
    }
    look.partitions[row.partition] = sample;
  }
  samples_.add(std::move(look));
}

}  // namespace pawl::dashboard
