#include "dashboard/dashboard.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "console/bad_call.hpp"
#include "dashboard/assets.hpp"
#include "dashboard/pages/pages.hpp"
#include "dashboard/queries.hpp"
#include "engine/halt_texts.hpp"
#include "kafka/error.hpp"
#include "message/digest.hpp"
#include "pawl/errors.hpp"
#include "postgres/error.hpp"

namespace pawl::dashboard {
namespace {

constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr std::size_t kMostNotices = 256;
constexpr std::size_t kLongestReason = 500;
/// For so long a browser is known to have signed in, if the process lives.
constexpr std::chrono::hours kBrowserTime{24 * 90};

struct PathRoute {
  std::string_view method;
  std::string_view path;
  Route route;
};
constexpr PathRoute kRoutes[] = {{"GET", "/", Route::kPartitions},
                                 {"GET", "/partition", Route::kPartition},
                                 {"GET", "/dead-letters", Route::kLetters},
                                 {"GET", "/dead-letter", Route::kLetter},
                                 {"GET", "/keys", Route::kKeys},
                                 {"GET", "/outbox", Route::kOutbox},
                                 {"GET", "/calls", Route::kLeases},
                                 {"GET", "/history", Route::kHistory},
                                 {"GET", "/sign-in", Route::kSignIn},
                                 {"GET", "/assets/style.css", Route::kStyle},
                                 {"GET", "/assets/script.js", Route::kScript},
                                 {"POST", "/sign-in", Route::kPostSignIn},
                                 {"POST", "/sign-out", Route::kPostSignOut},
                                 {"POST", "/partition", Route::kPostPartition},
                                 {"POST", "/dead-letter", Route::kPostLetter}};

/// Of the consumer, for its cookies.
std::string short_name(const Options& options) {
  return message::sha256_hex(options.kafka.cluster + "/" + options.kafka.group).substr(0, 8);
}

void secure(ops::HttpAnswer& answer, bool keep) {
  auto& headers = answer.headers;
  headers.emplace_back("Content-Security-Policy",
                       "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; "
                       "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri "
                       "'none'");
  headers.emplace_back("X-Content-Type-Options", "nosniff");
  headers.emplace_back("X-Frame-Options", "DENY");
  // Not "no-referrer": forms would come without their Origin.
  headers.emplace_back("Referrer-Policy", "same-origin");
  headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
  headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  headers.emplace_back("Cache-Control", keep ? "no-cache" : "no-store");
}

ops::HttpAnswer see_other(const std::string& location) {
  return {303, kHtml, "", {{"Location", location}}};
}

std::string partition_path(const Fields& form) {
  return "/partition" +
         to_query({{"topic", field(form, "topic")}, {"partition", field(form, "partition")}});
}

std::string letter_path(const Fields& form) {
  return "/dead-letter" + to_query({{"id", field(form, "id")}});
}

std::string with(const std::string& path, const std::string& notice) {
  return path + (path.find('?') == std::string::npos ? "?" : "&") + "notice=" + notice;
}

std::string reason_of(const Fields& form) {
  auto reason = field(form, "reason");
  const auto begin = reason.find_first_not_of(" \t\r\n");
  return begin == std::string::npos ? std::string{} : reason.substr(begin);
}

}  // namespace

Route route(std::string_view method, std::string_view path) {
  if (method == "HEAD")
    method = "GET";
  bool known = false;
  for (const auto& one : kRoutes) {
    if (one.path != path)
      continue;
    if (one.method == method)
      return one.route;
    known = true;
  }
  return known ? Route::kWrongMethod : Route::kUnknown;
}

bool needs_actor(Route route) {
  return route == Route::kPostSignOut || route == Route::kPostPartition ||
         route == Route::kPostLetter;
}

Dashboard::Dashboard(const Options& options, const Registry& registry)
    : options_(options),
      names_(ops::machine_name(), options.monitoring.hosts),
      cookie_("pawl_session_" + short_name(options)),
      browser_cookie_("pawl_browser_" + short_name(options)),
      access_(options.monitoring),
      connections_(options),
      sampler_(options, samples_),
      replays_(options, registry) {}

bool Dashboard::finish() {
  const bool looked = sampler_.finish();
  return replays_.finish() && looked;
}

ops::HttpAnswer Dashboard::answer(const ops::HttpRequest& request) {
  Asked asked{
      route(request.method, request.path), request, parse_fields(request.query),
      parse_fields(request.body),          {},      cookie(request.header("Cookie"), cookie_)};
  auto& frame = asked.frame;
  frame.cluster = options_.kafka.cluster;
  frame.group = options_.kafka.group;
  frame.path = request.path;
  frame.asked_by_get = request.method == "GET";
  frame.may_sign_in = access_.by_token();
  frame.may_act = access_.by_token();
  ops::HttpAnswer answer;
  const Origin origin{request.method,
                      access_.is_proxy(request.peer, request.header("Authorization")),
                      request.header("Host"),
                      request.header("Origin"),
                      request.header("Sec-Fetch-Site"),
                      request.header("X-Forwarded-Host")};
  if (const auto twice = repeated_header(request.count, options_.monitoring.actor_header)) {
    frame.problem = fmt::format(
        "The request has the header {} twice, so a proxy may have read the other one.", *twice);
    answer = {400, kHtml, message_html(frame, "Bad request")};
  } else if (const auto why = refusal(origin, names_)) {
    frame.problem = *why;
    answer = {403, kHtml, message_html(frame, "Request rejected")};
  } else if (!are_text(asked.query) || !are_text(asked.form)) {
    frame.problem = "The request contains a NUL byte or invalid UTF-8.";
    answer = {400, kHtml, message_html(frame, "Bad request")};
  } else {
    frame.actor = access_.find(origin.proxied, request.header(options_.monitoring.actor_header),
                               asked.session, Clock::now());
    try {
      answer = routed(asked);
    } catch (const FatalError& error) {
      frame.problem = error.what();
      answer = {503, kHtml, message_html(frame, "Not available")};
    } catch (const postgres::Error& error) {
      frame.problem = fmt::format("PostgreSQL: {}{}", error.what(),
                                  engine::rights_hint(options_.invocation, error));
      answer = {503, kHtml, message_html(frame, "Not available")};
    } catch (const postgres::InDoubt& error) {
      frame.problem = fmt::format("PostgreSQL: {}", error.what());
      answer = {503, kHtml, message_html(frame, "Not available")};
    } catch (const std::logic_error& error) {  // rows of a later schema
      frame.problem =
          fmt::format("This version cannot read a value in the database: {}", error.what());
      answer = {503, kHtml, message_html(frame, "Not available")};
    }
  }
  secure(answer, asked.route == Route::kStyle || asked.route == Route::kScript);
  return answer;
}

ops::HttpAnswer Dashboard::routed(Asked& asked) {
  switch (asked.route) {
    case Route::kStyle:
      return {200, "text/css; charset=utf-8", std::string(kStyle)};
    case Route::kScript:
      return {200, "text/javascript; charset=utf-8", std::string(kScript)};
    case Route::kUnknown:
      asked.frame.problem = "This page does not exist.";
      return {404, kHtml, message_html(asked.frame, "Not found")};
    case Route::kWrongMethod:
      asked.frame.problem = "This page does not support the method of the request.";
      return {405, kHtml, message_html(asked.frame, "Not allowed")};
    case Route::kSignIn:
      return {200, kHtml, sign_in_html(asked.frame, "")};
    case Route::kPostSignIn:
      return sign_in(asked);
    default:
      break;
  }
  if (needs_actor(asked.route))
    return act(asked);
  sampler_.wanted();
  asked.frame.done = take_notice(field(asked.query, "notice"));
  auto text = page(asked);
  if (text.empty()) {
    asked.frame.problem = "It does not exist. It may have been removed.";
    return {404, kHtml, message_html(asked.frame, "Not found")};
  }
  return {200, kHtml, std::move(text)};
}

std::string Dashboard::page(const Asked& asked) {
  {
    const auto session = connections_.get();
    try {
      return page(asked, *session);
    } catch (const postgres::Error& error) {
      if (!session.kept() || error.failure() != postgres::FailureClass::kConnection)
        throw;
    }
  }
  connections_.forget_kept();
  const auto session = connections_.get();
  return page(asked, *session);
}

std::string Dashboard::page(const Asked& asked, postgres::Session& session) {
  const auto& frame = asked.frame;
  switch (asked.route) {
    case Route::kPartitions:
      return partitions_html(frame, read_partitions(session, options_, samples_, asked.query));
    case Route::kPostPartition:
    case Route::kPartition: {
      const auto& fields = asked.route == Route::kPartition ? asked.query : asked.form;
      const auto number = partition_field(fields, "partition");
      if (!number)
        return {};
      auto found = read_partition(session, options_, samples_, {field(fields, "topic"), *number});
      if (!found)
        return {};
      found->action = field(fields, "do");
      found->reason = field(asked.form, "reason");
      return partition_html(frame, *found);
    }
    case Route::kLetters:
      return letters_html(frame,
                          read_letters(session, options_, asked.query, frame.actor.has_value()));
    case Route::kPostLetter:
    case Route::kLetter: {
      const auto& fields = asked.route == Route::kLetter ? asked.query : asked.form;
      const auto id = number_field(fields, "id");
      auto found = id ? read_letter(session, options_, *id, frame.actor.has_value()) : std::nullopt;
      if (!found)
        return {};
      found->action = field(fields, "do");
      found->reason = field(asked.form, "reason");
      found->needs_force = asked.needs_force;
      return letter_html(frame, *found);
    }
    case Route::kKeys: {
      const auto key = field(asked.query, "key");
      if (key.empty() || !frame.actor)
        return keys_html(frame, std::nullopt);
      return keys_html(frame, read_keys(session, options_, key));
    }
    case Route::kOutbox:
      return outbox_html(frame, read_outbox(session, options_));
    case Route::kLeases:
      return leases_html(frame, read_leases(session, options_));
    case Route::kHistory:
      return history_html(
          frame, read_history(session, options_, number_field(asked.query, "before").value_or(0)));
    default:
      return {};
  }
}

ops::HttpAnswer Dashboard::act(Asked& asked) {
  auto& frame = asked.frame;
  if (!frame.actor) {
    frame.problem =
        frame.may_sign_in
            ? "You are no longer signed in. Nothing was changed. Sign in and repeat the action."
            : "Actions are disabled here. Nothing was changed. See docs/dashboard.md.";
    return {403, kHtml, message_html(frame, "Nothing was changed")};
  }
  if (!same_secret(field(asked.form, "form_key"), frame.actor->form_key)) {
    frame.problem =
        "The form belongs to another session. Nothing was changed. Reload the page and repeat the "
        "action.";
    return {403, kHtml, message_html(frame, "Nothing was changed")};
  }
  if (asked.route == Route::kPostSignOut)
    return sign_out(asked);
  const auto given = reason_of(asked.form);
  if (given.empty() || given.size() > kLongestReason) {
    return conflict(asked, fmt::format("Enter a reason of at most {} bytes. Nothing was changed.",
                                       kLongestReason));
  }
  const auto reason = history_reason(frame.actor->name, given);
  Outcome outcome;
  try {
    const auto session = connections_.get();
    outcome = asked.route == Route::kPostPartition
                  ? act_on_partition(*session, options_, asked.form, reason)
                  : act_on_letter(*session, options_, replays_, asked.form, reason);
  } catch (const cli::BadCall& error) {
    return conflict(asked, error.what());
  } catch (const FatalError& error) {
    return conflict(asked, error.what());
  } catch (const kafka::KafkaError& error) {
    return conflict(asked, fmt::format("Kafka: {}. Nothing was changed.", error.what()));
  } catch (const postgres::InDoubt& error) {
    return conflict(asked, fmt::format("PostgreSQL: {}. Whether the change was stored is unknown. "
                                       "Check before you repeat it.",
                                       error.what()));
  } catch (const postgres::Error& error) {
    return conflict(asked, fmt::format("PostgreSQL: {}. Nothing was changed{}", error.what(),
                                       engine::rights_hint(options_.invocation, error)));
  }
  asked.needs_force = outcome.needs_force;
  if (!outcome.done)
    return conflict(asked, outcome.sentence);
  const auto path =
      asked.route == Route::kPostPartition ? partition_path(asked.form) : letter_path(asked.form);
  return see_other(with(path, keep_notice(outcome.sentence)));
}

ops::HttpAnswer Dashboard::conflict(Asked& asked, const std::string& sentence) {
  asked.frame.problem = sentence;
  const auto sentence_alone = [&] { return message_html(asked.frame, "Result"); };
  try {
    auto text = page(asked);
    return {409, kHtml, text.empty() ? sentence_alone() : std::move(text)};
  } catch (const std::exception&) {
    // The sentence matters more than the page.
    return {409, kHtml, sentence_alone()};
  }
}

ops::HttpAnswer Dashboard::sign_in(Asked& asked) {
  const auto name = field(asked.form, "name");
  const auto& request = asked.request;
  const auto client = access_.client(request.peer, request.header("X-Forwarded-For"),
                                     cookie(request.header("Cookie"), browser_cookie_));
  const auto result = access_.sign_in(client, field(asked.form, "token"), name, Clock::now());
  switch (result.outcome) {
    case Access::SignIn::kDone: {
      auto answer = see_other("/");
      const auto set = [&](const std::string& of, const std::string& value, const char* path,
                           std::chrono::seconds time) {
        answer.headers.emplace_back(
            "Set-Cookie",
            fmt::format("{}={}; Path={}; HttpOnly; SameSite=Strict; Max-Age={}{}", of, value, path,
                        time.count(),
                        // Behind a proxy that speaks TLS with the browser: never without.
                        request.header("X-Forwarded-Proto") == "https" ? "; Secure" : ""));
      };
      set(cookie_, result.session, "/", Access::kSessionTime);
      set(browser_cookie_, result.browser, "/sign-in", kBrowserTime);
      return answer;
    }
    case Access::SignIn::kWrong:
      asked.frame.problem = "The token is wrong.";
      break;
    case Access::SignIn::kTooOften:
      asked.frame.problem =
          "Too many wrong tokens from your address in the last minute. Retry in a minute.";
      return {429, kHtml, sign_in_html(asked.frame, name)};
    case Access::SignIn::kNameless:
      asked.frame.problem = "Enter your name. The history records it.";
      break;
  }
  return {403, kHtml, sign_in_html(asked.frame, name)};
}

ops::HttpAnswer Dashboard::sign_out(const Asked& asked) {
  access_.sign_out(asked.session);
  auto answer = see_other("/");
  answer.headers.emplace_back(
      "Set-Cookie", fmt::format("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", cookie_));
  return answer;
}

std::string Dashboard::keep_notice(std::string sentence) {
  auto id = random_secret().substr(0, 32);
  const std::scoped_lock lock(mutex_);
  notices_.emplace_back(id, std::move(sentence));
  while (notices_.size() > kMostNotices)
    notices_.pop_front();
  return id;
}

std::string Dashboard::take_notice(const std::string& id) {
  if (id.empty())
    return {};
  const std::scoped_lock lock(mutex_);
  for (auto notice = notices_.begin(); notice != notices_.end(); ++notice) {
    if (notice->first != id)
      continue;
    auto sentence = std::move(notice->second);
    notices_.erase(notice);
    return sentence;
  }
  return {};
}

}  // namespace pawl::dashboard
