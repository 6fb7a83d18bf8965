#include "handlers/topic_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "handlers/handler_statement.hpp"

namespace pawl::handlers {
namespace {

/// The handlers of one topic entry, while its plan is made.
struct Group {
  const std::vector<HandlerTraits>& all;
  std::string entry;
  std::vector<std::size_t> members;

  template <typename Has>
  [[nodiscard]] bool any(Has&& has) const {
    return std::ranges::any_of(members, [&](std::size_t member) { return has(all[member]); });
  }
  /// Their names, for a sentence.
  template <typename Has>
  [[nodiscard]] std::string names(Has&& has) const {
    std::vector<std::string> texts;
    for (const auto member : members) {
      if (has(all[member]))
        texts.push_back(handler_text(all[member].label));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
  }
};

bool is_concurrent(const HandlerTraits& handler) {
  return handler.concurrency > 1;
}
bool calls(const HandlerTraits& handler) {
  return handler.calls;
}
bool parks_its(const HandlerTraits& handler) {
  return parks(handler.on_failure);
}

Grouping grouping_of(const HandlerTraits& handler, TopicPlan::Order order, const Options& options) {
  if (order == TopicPlan::Order::kKey || handler.calls)
    return Grouping::kSingle;
  if (handler.batches) {
    // A message that may be parked must be compared with the parked record keys by itself.
    return parks_its(handler) || options.batch.max_messages == 1 ? Grouping::kSingle
                                                                 : Grouping::kBatch;
  }
  // Through a pooler nothing is sent ahead. What has no key has no claim to send.
  const bool may_pipeline =
      options.consumer.pipeline > 1 && !options.postgres.pooled && handler.has_key;
  return handler.plans_ahead && may_pipeline ? Grouping::kPipeline : Grouping::kSingle;
}

TopicPlan plan_of(const Group& group, const Options& options) {
  TopicPlan plan;
  plan.order = group.any(is_concurrent) ? TopicPlan::Order::kKey : TopicPlan::Order::kLog;
  plan.calls = group.any(calls);
  for (const auto member : group.members) {
    const auto& handler = group.all[member];
    plan.handlers.push_back({member, grouping_of(handler, plan.order, options)});
    if (is_concurrent(handler))
      plan.max_ahead = std::max(plan.max_ahead, handler.max_ahead);
  }
  plan.most_in_hand = std::min(plan.max_ahead, options.consumer.concurrency);
  if (plan.batches())
    plan.most_in_hand = std::max(plan.most_in_hand, options.batch.max_messages);
  if (plan.pipelines())
    plan.most_in_hand = std::max(plan.most_in_hand, options.consumer.pipeline);
  return plan;
}

/// Of a topic whose messages may be finished out of the log's order.
void refuse_out_of_order(const Group& group, std::vector<PlanRefusal>& refusals) {
  const bool parks = group.any(parks_its);
  for (const auto member : group.members) {
    const auto& handler = group.all[member];
    if (handler.batches && !is_concurrent(handler)) {
      refusals.push_back({member, "batch", "",
                          fmt::format("another handler of topic {} has concurrency", group.entry),
                          "Remove batch here, or concurrency there"});
    }
    if (parks && handler.order_by != "{key}") {
      refusals.push_back(
          {member, "order_by", fmt::format("\"{}\"", handler.order_by),
           fmt::format("messages of topic {} may be parked, and parked messages wait by record key",
                       group.entry),
           "Set order_by = \"{key}\""});
    }
  }
}

/// Whatever its topics are.
void refuse_alone(const HandlerTraits& handler, std::size_t index,
                  std::vector<PlanRefusal>& refusals) {
  if (handler.batches && is_concurrent(handler)) {
    refusals.push_back({index, "concurrency", std::to_string(handler.concurrency),
                        "the messages of a batch share one transaction",
                        "Remove it, or remove batch = true"});
  }
  // Without a key there is nothing to lease.
  if (handler.calls && handler.missing_key == MissingKey::kProcess) {
    refusals.push_back({index, "missing_key", "\"process\"",
                        fmt::format("{} makes external calls, which require an idempotency key",
                                    handler_text(handler.label)),
                        "Use \"fail\" or \"skip\""});
  }
}

void note_key_order(const Group& group, std::vector<std::string>& notes) {
  const auto concurrent = group.names(is_concurrent);
  for (const auto member : group.members) {
    const auto& handler = group.all[member];
    if (is_concurrent(handler))
      continue;
    notes.push_back(fmt::format(
        "{} processes its messages of topic {} one at a time, next to messages of other "
        "handlers, because {} has concurrency",
        handler_text(handler.label), group.entry, concurrent));
  }
}

void note_calls_in_order(const Group& group, std::vector<std::string>& notes) {
  if (group.members.size() == 1)
    return;
  for (const auto member : group.members) {
    const auto& handler = group.all[member];
    if (!handler.calls)
      continue;
    notes.push_back(fmt::format(
        "a call of {} blocks all later messages of its partition of topic {} until it finishes, "
        "including those of {}",
        handler_text(handler.label), group.entry,
        group.names([&](const auto& other) { return &other != &handler; })));
  }
}

void note_ungrouped_batch(const HandlerTraits& handler, const Options& options,
                          std::vector<std::string>& notes) {
  if (!handler.batches || is_concurrent(handler) || !parks_its(handler) ||
      options.batch.max_messages == 1)
    return;
  notes.push_back(fmt::format(
      "{} processes the messages of its batches one by one, because on_failure = \"{}\" compares "
      "each message with the parked record keys",
      handler_text(handler.label),
      handler.on_failure == FailurePolicy::kPark ? "park" : "retry-later"));
}

void once(std::vector<PlanRefusal>& refusals, PlanRefusal refusal) {
  const auto same = [&](const PlanRefusal& other) {
    return other.handler == refusal.handler && other.option == refusal.option &&
           other.what == refusal.what;
  };
  if (std::ranges::none_of(refusals, same))
    refusals.push_back(std::move(refusal));
}

}  // namespace

bool TopicPlan::has(Grouping grouping) const {
  return std::ranges::any_of(
      handlers, [&](const PlannedHandler& planned) { return planned.grouping == grouping; });
}

const TopicPlan& TopicPlans::of(std::string_view entry) const {
  static const TopicPlan kNone;
  const auto found = by_entry.find(entry);
  return found == by_entry.end() ? kNone : found->second;
}

Grouping TopicPlans::grouping(std::size_t handler) const {
  for (const auto& [entry, plan] : by_entry) {
    for (const auto& planned : plan.handlers) {
      if (planned.handler == handler && planned.grouping != Grouping::kSingle)
        return planned.grouping;
    }
  }
  return Grouping::kSingle;
}

TopicPlans plan_topics(const std::vector<HandlerTraits>& handlers, const Options& options) {
  TopicPlans plans;
  std::vector<Group> groups;
  std::vector<PlanRefusal> refusals;
  for (std::size_t i = 0; i < handlers.size(); ++i) {
    refuse_alone(handlers[i], i, refusals);
    note_ungrouped_batch(handlers[i], options, plans.notes);
    for (const auto& topic : handlers[i].topics) {
      const auto group = std::ranges::find(groups, topic, &Group::entry);
      auto& of = group == groups.end() ? groups.emplace_back(Group{handlers, topic, {}}) : *group;
      of.members.push_back(i);
    }
  }
  for (const auto& group : groups) {
    const auto& plan = plans.by_entry.emplace(group.entry, plan_of(group, options)).first->second;
    if (plan.order == TopicPlan::Order::kKey) {
      refuse_out_of_order(group, refusals);
      note_key_order(group, plans.notes);
    } else if (plan.calls) {
      note_calls_in_order(group, plans.notes);
    }
  }
  for (auto& refusal : refusals)
    once(plans.refusals, std::move(refusal));
  return plans;
}

std::string label_of(const HandlerOptions& options, std::size_t position) {
  if (!options.name.empty())
    return options.name;
  if (!options.function.empty())
    return options.function;
  return handler_option(position);
}

std::vector<HandlerTraits> traits_of(const Options& options, const Registry* registry) {
  std::vector<HandlerTraits> all;
  for (std::size_t i = 0; i < options.handlers.size(); ++i) {
    const auto& from = options.handlers[i];
    const bool code = from.sql.empty() && from.function.empty() && from.http.empty();
    HandlerTraits traits;
    traits.label = label_of(from, i);
    traits.topics = from.topics;
    traits.calls = !from.http.empty();
    traits.batches = from.batch;
    const auto& key = from.key ? *from.key : options.idempotency.key;
    traits.has_key = !key.empty() || code;
    if (registry != nullptr) {
      traits.has_key = !key.empty() || registry->find_key(from.name) != nullptr;
      if (code) {
        traits.calls = registry->find_leased_handler(from.name) != nullptr;
        traits.batches = registry->find_batch_handler(from.name) != nullptr;
      }
    }
    traits.missing_key = from.missing_key.value_or(options.idempotency.missing_key);
    traits.on_failure = from.failures.value_or(options.failures).on_failure;
    traits.concurrency = from.concurrency;
    traits.max_ahead = from.concurrency_window;
    traits.order_by = from.order_by;
    all.push_back(std::move(traits));
  }
  return all;
}

}  // namespace pawl::handlers
