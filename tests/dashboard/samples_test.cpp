#include "dashboard/samples.hpp"

#include "prelude.hpp"

using namespace pawl::dashboard;

namespace {

const pawl::TopicPartition kOne{"orders", 0};
const pawl::TopicPartition kOther{"orders", 1};

Samples::Look look(int seconds, std::map<pawl::TopicPartition, Sample> partitions) {
  static const auto begin = std::chrono::steady_clock::now();
  Samples::Look look;
  look.at = begin + std::chrono::seconds(seconds);
  look.partitions = std::move(partitions);
  return look;
}

}  // namespace

TEST_CASE("without looks nothing is known, and one look knows no rate") {
  Samples samples;
  CHECK(samples.view().courses.empty());
  CHECK_FALSE(samples.view().total.rate);
  samples.add(look(0, {{kOne, {5, 0, std::nullopt}}}));
  CHECK_FALSE(samples.view().courses.at(kOne).rate);
  CHECK(samples.view().courses.at(kOne).period == std::chrono::seconds(0));
  CHECK_FALSE(samples.view().total.lags.back());
}

TEST_CASE("where a log ended before is of the last look, and of what that asked for") {
  Samples samples;
  auto one = look(0, {{kOne, {5, 0, 3}}, {kOther, {5, 0, 3}}});
  one.ends_before = {{kOne, 7}};
  samples.add(one);
  CHECK(samples.course(kOne).end_before == 7);
  CHECK_FALSE(samples.course(kOther).end_before);
  samples.add(look(10, {{kOne, {5, 0, 3}}}));
  CHECK_FALSE(samples.course(kOne).end_before);
}

TEST_CASE("a lag is of the last look") {
  Samples samples;
  samples.add(look(0, {{kOne, {5, 0, 3}}, {kOther, {5, 0, 1}}}));
  samples.add(look(10, {{kOne, {9, 0, 4}}, {kOther, {9, 0, std::nullopt}}}));
  CHECK(samples.course(kOne).lag == 4);
  CHECK(samples.course(kOne).at);
  CHECK_FALSE(samples.course(kOther).lag);
  CHECK_FALSE(samples.view().total.lag);
  samples.add(look(20, {{kOne, {9, 0, 4}}, {kOther, {9, 0, 2}}}));
  CHECK(samples.view().total.lag == 6);
}

TEST_CASE("a rate is of the time that was looked at, and begins anew with the counters") {
  Samples samples;
  samples.add(look(0, {{kOne, {0, 0, 100}}, {kOther, {0, 0, 10}}}));
  samples.add(look(10, {{kOne, {50, 0, 50}}, {kOther, {10, 0, std::nullopt}}}));
  samples.add(look(20, {{kOne, {150, 0, 0}}, {kOther, {2, 7, 3}}}));
  const auto courses = samples.view().courses;
  CHECK(courses.at(kOne).rate == 7.5);
  CHECK(courses.at(kOne).period == std::chrono::seconds(20));
  CHECK(courses.at(kOne).rates == std::vector<std::optional<double>>{5.0, 10.0});
  CHECK_FALSE(courses.at(kOther).rate);
  CHECK(samples.course(kOne).rate == 7.5);
  CHECK(samples.course({"never seen", 0}).lags.empty());
  CHECK(courses.at(kOther).rates == std::vector<std::optional<double>>{1.0, std::nullopt});
  // A lag that is unknown of one is unknown of all.
  CHECK(samples.view().total.lags ==
        std::vector<std::optional<std::int64_t>>{110, std::nullopt, 3});
  CHECK(samples.view().total.rates == std::vector<std::optional<double>>{6.0, 10.0});
}

TEST_CASE("what was seen a minute ago is not known now, and a look that failed says why") {
  Samples samples;
  samples.add(look(-61, {{kOne, {5, 0, 0}}}));
  CHECK(samples.view().courses.empty());
  CHECK(samples.course(kOne).lags.empty());
  CHECK(samples.view().total.lags.empty());
  CHECK_FALSE(samples.view().whole);
  CHECK_THAT(samples.view().problems.at(0), ContainsSubstring("Lags and rates are unknown"));
  auto failed = look(0, {});
  failed.whole = false;
  failed.problems = {"PostgreSQL is away"};
  samples.add(failed);
  CHECK(samples.view().problems == std::vector<std::string>{"PostgreSQL is away"});
  CHECK(samples.view().courses.empty());
  CHECK_FALSE(samples.view().total.lags.back());
  samples.add(look(10, {{kOne, {5, 0, 0}}}));
  CHECK(samples.view().whole);
  CHECK(samples.view().problems.empty());
  CHECK(samples.view().total.lags.back() == 0);
  samples.clear();
  CHECK(samples.view().courses.empty());
  CHECK(samples.view().problems.empty());
}

TEST_CASE("without all partitions that there should be, the lag of all is unknown") {
  Samples samples;
  auto part = look(0, {{kOne, {5, 0, 7}}});
  part.whole = false;
  samples.add(part);
  CHECK_FALSE(samples.view().total.lags.back());
  CHECK(samples.view().courses.at(kOne).lags.back() == 7);
}

TEST_CASE("looks are bounded: the oldest goes") {
  Samples samples;
  for (int i = 0; i < static_cast<int>(Samples::kMost) + 5; ++i)
    samples.add(look(10 * i, {{kOne, {i, 0, i}}}));
  const auto course = samples.view().courses.at(kOne);
  CHECK(course.lags.size() == Samples::kMost);
  CHECK(course.lags.front() == 5);
}
