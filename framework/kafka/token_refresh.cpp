#include "kafka/token_refresh.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "kafka/oauth_token.hpp"

namespace pawl::kafka {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTimeout{10000};
constexpr std::size_t kMostOutput = std::size_t{256} << 10U;
/// The end is told by rd_kafka_queue_yield(); the bound is for what nobody foresaw.
constexpr milliseconds kPoll{1000};

std::int64_t now_ms() {
  return std::chrono::duration_cast<milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void TokenRefresh::prepare(const KafkaOptions& options, rd_kafka_conf_t* conf) {
  // librdkafka puts its requests for tokens into a queue of their own then, which is served here.
  if (!options.oauth_token_command.empty())
    rd_kafka_conf_enable_sasl_queue(conf, 1);
}

std::unique_ptr<TokenRefresh> TokenRefresh::begin(const KafkaOptions& options, rd_kafka_t* client,
                                                  Report report) {
  if (options.oauth_token_command.empty())
    return nullptr;
  // There is none with another mechanism, which validation refuses.
  QueueHandle requests(rd_kafka_queue_get_sasl(client));
  if (!requests)
    return nullptr;
  return std::make_unique<TokenRefresh>(options, client, std::move(requests), std::move(report));
}

TokenRefresh::TokenRefresh(const KafkaOptions& options, rd_kafka_t* client, QueueHandle requests,
                           Report report)
    : client_(client),
      requests_(std::move(requests)),
      report_(std::move(report)),
      program_(options.oauth_token_command, kTimeout, kMostOutput),
      path_(options.oauth_token_command.front()),
      thread_([this] { serve(); }) {}

TokenRefresh::~TokenRefresh() {
  ending_ = true;
  program_.end_by(process::Program::Clock::now());
  rd_kafka_queue_yield(requests_.get());
  thread_.join();
}

void TokenRefresh::serve() {
  while (!ending_) {
    const EventHandle event(rd_kafka_queue_poll(requests_.get(), static_cast<int>(kPoll.count())));
    if (event && rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_OAUTHBEARER_TOKEN_REFRESH)
      refresh();
  }
}

void TokenRefresh::refresh() {
  const auto asked = now_ms();
  auto [problem, printed] = program_.run({});
  if (ending_)
    return;
  if (problem.empty()) {
    try {
      set_token(printed, asked);
      return;
    } catch (const std::invalid_argument& error) {
      problem = error.what();
    }
  }
  const auto text = fmt::format(
      "kafka.oauth_token_command failed: {} ({}). Run it as the user of this process to see its "
      "output",
      problem, path_);
  report_(text);
  rd_kafka_oauthbearer_set_token_failure(client_, text.c_str());
}

void TokenRefresh::set_token(const std::string& printed, std::int64_t asked_ms) {
  const auto token = read_oauth_token(printed, asked_ms);
  std::vector<const char*> extensions;
  for (const auto& [name, value] : token.extensions) {
    extensions.push_back(name.c_str());
    extensions.push_back(value.c_str());
  }
  // Its text may quote the token.
  char text[512];
  if (rd_kafka_oauthbearer_set_token(client_, token.value.c_str(), token.expires_ms,
                                     token.principal.c_str(), extensions.data(), extensions.size(),
                                     text, sizeof text) != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::invalid_argument("librdkafka rejects its token, which may have expired");
}

}  // namespace pawl::kafka
