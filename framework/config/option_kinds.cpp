#include <filesystem>
#include <type_traits>

#include "config/option_table.hpp"
#include "config/units.hpp"
#include "config/values.hpp"

namespace pawl::config {

namespace {

/// Reads the value of one option into its field, by the kind of that field.
class FieldReader {
 public:
  FieldReader(std::string key, const Reader& section, Findings& findings, Settings& out)
      : key_(std::move(key)), section_(section), findings_(findings), out_(out) {}

  void operator()(const TextField& field) const { section_.text(key_, field.of(out_)); }
  void operator()(const PathField& field) const {
    std::string& out = field.of(out_);
    section_.text(key_, out);
    const Node* const node = section_.node(key_);
    if (node != nullptr && !out.empty())
      out = (std::filesystem::path(node->source->folder) / out).string();
  }
  void operator()(const WordField& field) const { section_.text(key_, field.of(out_)); }
  void operator()(const TextsField& field) const { section_.texts(key_, field.of(out_)); }
  void operator()(const FlagField& field) const { section_.flag(key_, field.of(out_)); }
  void operator()(const DurationField& field) const { section_.duration(key_, field.of(out_)); }
  void operator()(const DurationsField& field) const { section_.durations(key_, field.of(out_)); }
  void operator()(const SizeField& field) const { section_.size(key_, field.of(out_)); }
  void operator()(const CountField& field) const { section_.count(key_, field.of(out_)); }
  void operator()(const OtherField& field) const { field.read(section_, findings_, out_); }
  void operator()(const ChoiceField& field) const {
    std::vector<std::string_view> names;
    for (const Word& word : field.words)
      names.push_back(word.name);
    if (const auto index = section_.choice(key_, names))
      field.set(out_, *index);
  }

 private:
  std::string key_;
  const Reader& section_;
  Findings& findings_;
  Settings& out_;
};

class FieldValue {
 public:
  explicit FieldValue(Settings& settings) : settings_(settings) {}

  Node operator()(const TextField& field) const { return text_value(field.of(settings_)); }
  Node operator()(const PathField& field) const { return text_value(field.of(settings_)); }
  Node operator()(const WordField& field) const { return text_value(field.of(settings_)); }
  Node operator()(const TextsField& field) const { return texts_value(field.of(settings_)); }
  Node operator()(const FlagField& field) const { return flag_value(field.of(settings_)); }
  Node operator()(const DurationField& field) const {
    return text_value(format_duration(field.of(settings_)));
  }
  Node operator()(const DurationsField& field) const {
    std::vector<std::string> texts;
    for (const auto duration : field.of(settings_))
      texts.push_back(format_duration(duration));
    return texts_value(texts);
  }
  Node operator()(const SizeField& field) const {
    return text_value(format_size(field.of(settings_)));
  }
  Node operator()(const CountField& field) const { return integer_value(field.of(settings_)); }
  Node operator()(const ChoiceField& field) const {
    return text_value(std::string{field.words[field.get(settings_)].name});
  }
  Node operator()(const OtherField& field) const { return field.value(settings_); }

 private:
  Settings& settings_;
};

}  // namespace

void read_option(const OptionDescriptor& option, const Reader& section, Findings& findings,
                 Settings& out) {
  std::visit(FieldReader{std::string{option.name}, section, findings, out}, option.field);
}

Node value_of(const OptionDescriptor& option, Settings& settings) {
  return std::visit(FieldValue{settings}, option.field);
}

}  // namespace pawl::config
