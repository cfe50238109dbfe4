// SPDX-License-Identifier: MIT
// A tool that counts words: `{"id": 1, "tool": "word-count", "arguments": {"text": "a b"}}`.
#include <sstream>

#include "framework/plugin.hpp"
#include "plugins/tool.hpp"

namespace {

using namespace stockade;

struct WordCountConfig {
  std::uint32_t most_words = 1000;
};

void rules(ConfigRules<WordCountConfig>& rules) {
  rules.range(&WordCountConfig::most_words, 1, 1000000)
      .describe(&WordCountConfig::most_words, "counting stops there");
}

class WordCount final : public Tool {
 public:
  explicit WordCount(WordCountConfig config) : config_(config) {}

  ToolDescription describe() const override {
    return {"word-count",
            "Count words",
            "Counts the words of a text.",
            {{"type", "object"},
             {"properties", {{"text", {{"type", "string"}}}}},
             {"required", nlohmann::ordered_json::array({"text"})}},
            {{"type", "object"}, {"properties", {{"words", {{"type", "integer"}}}}}},
            {{"readOnlyHint", true}}};
  }

  Task<ToolResult> call(ToolCall call) override {
    auto text = call.arguments.find("text");
    if (text == call.arguments.end() || !text->is_string())
      co_return tool_error("ARGUMENTS_INVALID", "expected {\"text\": \"...\"}");
    std::istringstream input(text->get<std::string>());
    std::uint32_t words = 0;
    for (std::string word; words < config_.most_words && input >> word;) ++words;
    co_return ToolResult{std::to_string(words) + " words", {{"words", words}}, false};
  }

 private:
  WordCountConfig config_;
};

Task<> apply(Context context, WordCountConfig config) {
  context.provide_as<Tool>(tool_service("word-count"), std::make_shared<WordCount>(config));
  co_return;
}

}  // namespace

STOCKADE_PLUGIN("word-count", ({}, {"tool:word-count/1"}), apply)
