// Texts from elsewhere, as they are printed.
#include <doctest/doctest.h>
#include <string>

#include "base/printable.hpp"

using sylvit::base::printable;

TEST_SUITE("base/printable") {
  TEST_CASE("what could steer a terminal is spelled out") {
    CHECK(printable("\x1b[2J\x1b]0;title\x07") == R"(\x1b[2J\x1b]0;title\x07)");
    CHECK(printable({"a\0b\r\n\tc\x7f", 8}) == R"(a\x00b\x0d\x0a\x09c\x7f)");
    // U+009B begins a sequence as ESC [ does; in UTF-8, and as the byte alone.
    CHECK(printable("\u009b31m") == R"(\xc2\x9b31m)");
    CHECK(printable("\x9b"
                    "31m") == R"(\x9b31m)");
    CHECK(printable("\u0080\u009f\u00a0") == "\\xc2\\x80\\xc2\\x9f\u00a0");
  }

  TEST_CASE("what could make a line look like another one is spelled out") {
    for (const char* turn : {"\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069",
                             "\u2028", "\u2029"}) {
      const std::string text = printable(std::string("a") + turn + "b");
      CHECK(text.size() == 14);
      CHECK(text.starts_with("a\\xe2\\x8"));
    }
    CHECK(printable("\u202e") == R"(\xe2\x80\xae)");
    CHECK(printable("\u2027\u202f\u2065\u206a") == "\u2027\u202f\u2065\u206a");
  }

  TEST_CASE("what is not UTF-8 is spelled out, and what is stays") {
    const std::string good = "Käfer, жук, 甲虫, \U0001F41E, שלום";
    CHECK(printable(good) == good);
    CHECK(printable("\xc3") == R"(\xc3)");
    CHECK(printable("\xc3(") == R"(\xc3()");
    CHECK(printable("\xe2\x82") == R"(\xe2\x82)");
    CHECK(printable("\xc0\x8a") == R"(\xc0\x8a)");                  // a line end, written longer
    CHECK(printable("\xe0\x82\x9b") == R"(\xe0\x82\x9b)");          // U+009B, written longer
    CHECK(printable("\xed\xa0\x80") == R"(\xed\xa0\x80)");          // half a surrogate pair
    CHECK(printable("\xf4\x90\x80\x80") == R"(\xf4\x90\x80\x80)");  // beyond Unicode
    CHECK(printable("\xf8\x88\x80\x80\x80") == R"(\xf8\x88\x80\x80\x80)");
    CHECK(printable("\xff\xfe") == R"(\xff\xfe)");
    CHECK(printable("") == "");
  }

  TEST_CASE("no byte of any kind passes that could steer, and a second time changes nothing") {
    std::string all;
    for (int first = 0; first < 256; ++first)
      for (int second = 0; second < 256; ++second) {
        const std::string pair{static_cast<char>(first), static_cast<char>(second)};
        const std::string text = printable(pair);
        for (const char c : text) REQUIRE((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
        REQUIRE(printable(text) == text);
        all += pair;
      }
    CHECK(printable(printable(all)) == printable(all));
  }
}
