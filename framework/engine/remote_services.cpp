#include "engine/remote_services.hpp"

#include <algorithm>
#include <utility>

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

/// A message that is this late with its next question is forgotten: its partition was given to
/// another process, or an operator has skipped the message.
constexpr std::chrono::seconds kGone{30};
/// The same for a message that failed by status. It is longer, because retry_for is measured.
constexpr std::chrono::hours kForgotten{1};
/// Most calls take less. For this time the message of a probe counts as one that waits.
constexpr std::chrono::seconds kCall{30};
/// How often messages ask while another message probes.
constexpr milliseconds kWhileProbed{1000};
/// How long a message whose probe failed leaves the next probe to others.
constexpr std::chrono::seconds kYields{5};

}  // namespace

OutageVerdict judge(const FailedCall& call) {
  if (!call.by_status || !call.others_succeed)
    return OutageVerdict::kServiceAway;
  return call.failing_for < call.retry_for ? OutageVerdict::kMessageWaits
                                           : OutageVerdict::kMessageAtFault;
}

RemoteServices::Turn::Turn(std::shared_ptr<RemoteServices> services, std::string remote,
                           Place place, bool probes)
    : services_(std::move(services)),
      remote_(std::move(remote)),
      place_(std::move(place)),
      probes_(probes) {}

RemoteServices::Turn::Turn(Turn&& other) noexcept
    : services_(std::move(other.services_)),
      remote_(std::move(other.remote_)),
      place_(std::move(other.place_)),
      probes_(other.probes_) {}

RemoteServices::Turn& RemoteServices::Turn::operator=(Turn&& other) noexcept {
  if (this == &other)
    return *this;
  end();
  services_ = std::move(other.services_);
  remote_ = std::move(other.remote_);
  place_ = std::move(other.place_);
  probes_ = other.probes_;
  return *this;
}

void RemoteServices::Turn::end() noexcept {
  if (const auto services = std::exchange(services_, nullptr))
    services->not_called(*this);
}

void RemoteServices::Turn::responded(bool succeeded) {
  if (const auto services = std::exchange(services_, nullptr))
    services->responded(*this, succeeded);
}

std::optional<milliseconds> RemoteServices::Turn::failed(FailedCall call, const std::string& why,
                                                         milliseconds retry_after,
                                                         Clock::time_point now) {
  const auto services = std::exchange(services_, nullptr);
  return services ? services->failed(*this, call, why, retry_after, now) : std::nullopt;
}

/// At most one pause, because a call in progress may end the outage before the next probe.
milliseconds RemoteServices::until_probe(const Service& service, Clock::time_point now) {
  return std::clamp(std::chrono::ceil<milliseconds>(service.next_probe - now), milliseconds(1),
                    kLongestPause);
}

/// Whether another message should probe: the service may be unreachable for this message alone.
bool RemoteServices::must_yield(const Service& service, const Place& place, Clock::time_point now) {
  return service.probed || (service.failed_last == place && service.waiting.size() > 1 &&
                            now < service.next_probe + kYields);
}

std::variant<RemoteServices::Turn, milliseconds> RemoteServices::ask(const std::string& remote,
                                                                     const Place& place,
                                                                     Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  auto& service = services_[remote];
  if (!service.away_since)
    return Turn(shared_from_this(), remote, place, false);
  auto& waiting = service.waiting[place];
  const bool yields = must_yield(service, place, now);
  if (yields || now < service.next_probe) {
    const auto wait = now < service.next_probe ? until_probe(service, now) : kWhileProbed;
    waiting.until = now + wait;
    return wait;
  }
  service.probed = true;
  waiting.until = now + kCall;
  return Turn(shared_from_this(), remote, place, true);
}

std::optional<milliseconds> RemoteServices::failed(const Turn& turn, FailedCall call,
                                                   const std::string& why, milliseconds retry_after,
                                                   Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  auto& service = services_[turn.remote_];
  if (turn.probes_)
    service.probed = false;
  auto& waiting = service.waiting[turn.place_];
  if (call.by_status && !waiting.failing_since) {
    waiting.failing_since = now;
    waiting.succeeded_before = service.succeeded;
  }
  if (waiting.failing_since) {
    call.others_succeed = service.succeeded > waiting.succeeded_before;
    call.failing_for = std::chrono::floor<milliseconds>(now - *waiting.failing_since);
  }
  auto wait = std::max(retry_after, milliseconds(1));
  switch (judge(call)) {
    case OutageVerdict::kMessageAtFault:
      waiting.until = now;
      return std::nullopt;
    case OutageVerdict::kMessageWaits:
      wait = std::max(wait, waiting.pause.next());
      break;
    case OutageVerdict::kServiceAway: {
      const bool begins = !service.away_since;
      if (begins) {
        service.away_since = std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
        service.pause.reset();
      }
      // Of several calls that fail together one counts.
      if (begins || turn.probes_)
        service.next_probe = now + std::max(wait, service.pause.next());
      service.why = why;
      service.failed_last = turn.place_;
      wait = until_probe(service, now);
      break;
    }
  }
  waiting.until = now + wait;
  return wait;
}

void RemoteServices::responded(const Turn& turn, bool succeeded) {
  const std::scoped_lock lock(mutex_);
  auto& service = services_[turn.remote_];
  service.succeeded += succeeded ? 1 : 0;
  service.away_since.reset();
  service.probed = false;
  service.waiting.erase(turn.place_);
  std::erase_if(service.waiting, [](const auto& one) { return !one.second.failing_since; });
}

void RemoteServices::not_called(const Turn& turn) {
  const std::scoped_lock lock(mutex_);
  auto& service = services_[turn.remote_];
  if (turn.probes_)
    service.probed = false;
  const auto waiting = service.waiting.find(turn.place_);
  if (waiting != service.waiting.end() && !waiting->second.failing_since)
    service.waiting.erase(waiting);
}

std::vector<RemoteServices::Away> RemoteServices::away(Clock::time_point now) {
  const std::scoped_lock lock(mutex_);
  std::vector<Away> found;
  for (auto& [remote, service] : services_) {
    std::erase_if(service.waiting, [now](const auto& one) {
      const auto& waiting = one.second;
      return now - waiting.until >
             (waiting.failing_since ? Clock::duration(kForgotten) : Clock::duration(kGone));
    });
    if (!service.away_since)
      continue;
    Away away{remote, *service.away_since, service.why, {}};
    for (const auto& [place, waiting] : service.waiting) {
      if (now - waiting.until <= kGone)
        ++away.waiting[place.partition];
    }
    if (away.waiting.empty())
      service.away_since.reset();
    else
      found.push_back(std::move(away));
  }
  return found;
}

}  // namespace pawl::engine
