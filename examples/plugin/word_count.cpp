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

  Task<ToolResult> call(nlohmann::json arguments, AbortSignal) override {
    ToolResult result;
    if (!arguments.is_object() || !arguments.value("text", nlohmann::json()).is_string()) {
      result.text = "expected {\"text\": \"...\"}";
      result.is_error = true;
      co_return result;
    }
    std::istringstream text(arguments["text"].get<std::string>());
    std::uint32_t words = 0;
    for (std::string word; words < config_.most_words && text >> word;) ++words;
    result.text = std::to_string(words) + " words";
    result.structured = {{"words", words}};
    co_return result;
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
